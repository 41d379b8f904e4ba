/// TLS settings for Redis. The server's certificate is always verified.
public struct RedisTLS: Sendable, Equatable {
    /// PEM file of trusted certificate authorities; nil: the system's.
    public var caFile: String?
    /// PEM file of the client certificate, if the server requires one; needs ``keyFile``.
    public var certificateFile: String?
    /// PEM file of the client certificate's private key.
    public var keyFile: String?
    /// Expected name in the server's certificate; nil: the host of the address.
    public var serverName: String?

    /// Creates TLS settings.
    public init(
        caFile: String? = nil, certificateFile: String? = nil, keyFile: String? = nil, serverName: String? = nil
    ) {
        self.caFile = caFile
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        self.serverName = serverName
    }

    /// Whether this build supports TLS: it needs libhiredis_ssl, which hiredis 0.14 of Debian 12 lacks.
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

    /// The settings by the names of redis-cli's options, used in the query of the address.
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

    /// Checks the combination of settings.
    /// - Throws: `configuration` for a certificate without its key, or a key without its certificate.
    public func validate() throws(RedisError) {
        guard (certificateFile == nil) == (keyFile == nil) else {
            throw RedisError(
                .configuration, "a client certificate for Redis needs its key, and the key its certificate",
                hint: "give both: --redis-cert FILE --redis-key FILE")
        }
    }
}
