internal import CHiredis

/// The client library.
package enum RedisLibrary {
    /// `hiredis 0.14.1`, and whether it speaks TLS.
    package static var version: String {
        "hiredis \(HIREDIS_MAJOR).\(HIREDIS_MINOR).\(HIREDIS_PATCH)\(RedisTLS.isBuiltIn ? "" : " without TLS")"
    }
}
