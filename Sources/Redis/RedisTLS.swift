/// How a connection to Redis is encrypted. The server's certificate is always verified.
public struct RedisTLS: Sendable, Equatable {
    /// A file with the authorities that are trusted, in PEM; nil: the system's.
    public var caFile: String?
    /// A file with the client's certificate, in PEM, for a server that asks for one; with ``keyFile``.
    public var certificateFile: String?
    /// A file with the key of the client's certificate, in PEM.
    public var keyFile: String?
    /// The name the server's certificate has; nil: the host of the address.
    public var serverName: String?

    /// Settings by their parts.
    public init(
        caFile: String? = nil, certificateFile: String? = nil, keyFile: String? = nil, serverName: String? = nil
    ) {
        self.caFile = caFile
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        self.serverName = serverName
    }

    /// Whether this program can do it: it was built where hiredis brings libhiredis_ssl, which 0.14 of Debian 12 does not.
    public static var isBuiltIn: Bool {
        #if REDIS_TLS
            true
        #else
            false
        #endif
    }

    static let notBuiltIn = RedisError(
        .configuration, "the Redis address asks for TLS, which this build's hiredis cannot do",
        hint:
            "build it where hiredis is 1.0 or newer (Debian 13, Ubuntu 24.04), put stunnel in front of the server, or use a Unix socket; there is no fall-back to clear text"
    )

    /// What is set, by the names of redis-cli's options, which the address has in its query.
    var parameters: [(name: String, value: String)] {
        [("cacert", caFile), ("cert", certificateFile), ("key", keyFile), ("sni", serverName)].compactMap {
            name, value in
            value.map { (name, $0) }
        }
    }

    mutating func set(_ name: String, to value: String) {
        switch name {
        case "cacert": caFile = value
        case "cert": certificateFile = value
        case "key": keyFile = value
        default: serverName = value
        }
    }

    /// Looks whether the settings go together.
    /// - Throws: `configuration` for a certificate without its key, or the other way round.
    public func validate() throws(RedisError) {
        guard (certificateFile == nil) == (keyFile == nil) else {
            throw RedisError(
                .configuration, "a client certificate for Redis needs its key, and the key its certificate",
                hint: "give both: --redis-cert FILE --redis-key FILE")
        }
    }
}
