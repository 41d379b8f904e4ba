internal import CHiredis

package enum RedisLibrary {
    /// For example `hiredis 0.14.1`, with a note if it lacks TLS.
    package static var version: String {
        "hiredis \(HIREDIS_MAJOR).\(HIREDIS_MINOR).\(HIREDIS_PATCH)\(RedisTLS.isBuiltIn ? "" : " without TLS")"
    }
}
