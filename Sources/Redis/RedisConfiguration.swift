/// Address, credentials and timeouts of a Redis server.
///
/// Printing a configuration shows ``redactedURL``, never the password.
public struct RedisConfiguration: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible {
    /// The server's address.
    public enum Endpoint: Sendable, Hashable {
        /// Host name or address (IPv6 without brackets), and port.
        case tcp(host: String, port: Int)
        /// Path of a Unix socket.
        case unix(path: String)
    }

    /// The server's address; default 127.0.0.1, port 6379.
    public var endpoint: Endpoint
    /// The ACL user; nil (default) means Redis' own `default`.
    public var username: String?
    /// Sent with AUTH; nil (default) sends none. Callers that read it from a file or from `REDISCLI_AUTH` set it here.
    public var password: String?
    /// The database number; default 0.
    public var database: Int
    /// TLS settings; nil (default) means no encryption.
    public var tls: RedisTLS?
    /// Timeout of one connect; default 5 s.
    public var connectTimeout: Duration
    /// Timeout of one reply; default 5 s. Blocking commands add theirs.
    public var commandTimeout: Duration
    /// Hint of the error if the server is unreachable; replaced if the user did not choose this address.
    package var unavailableHint = "start redis-server there, or name another one with --redis"
    /// The file of trusted authorities if ``RedisTLS/caFile`` names none; nil: OpenSSL's own.
    package var authorities: String?

    /// Creates a configuration.
    public init(
        endpoint: Endpoint = .tcp(host: "127.0.0.1", port: 6379), username: String? = nil, password: String? = nil,
        database: Int = 0, tls: RedisTLS? = nil, connectTimeout: Duration = .seconds(5),
        commandTimeout: Duration = .seconds(5)
    ) {
        self.endpoint = endpoint
        self.username = username
        self.password = password
        self.database = database
        self.tls = tls
        self.connectTimeout = connectTimeout
        self.commandTimeout = commandTimeout
    }

    /// The address in canonical form with `***` in place of the password: for screens and logs.
    public var redactedURL: String {
        var credentials = ""
        if username != nil || password != nil {
            credentials = Self.escape(username ?? "") + (password == nil ? "" : ":***") + "@"
        }
        switch endpoint {
        case .tcp(let host, let port):
            let host = host.contains(":") ? "[\(host)]" : host
            let scheme = tls == nil ? "redis" : "rediss"
            return "\(scheme)://\(credentials)\(host):\(port)" + (database == 0 ? "" : "/\(database)") + tlsQuery
        case .unix(let path):
            return "unix://\(credentials)\(Self.escape(path))" + (database == 0 ? "" : "?db=\(database)")
        }
    }

    private var tlsQuery: String {
        let items = (tls?.parameters ?? []).map { "\($0.name)=\(Self.escape($0.value))" }
        return items.isEmpty ? "" : "?" + items.joined(separator: "&")
    }

    /// Same as ``redactedURL``.
    public var description: String { redactedURL }

    /// Same as ``redactedURL``.
    public var debugDescription: String { redactedURL }

    /// Percent-encodes bytes that RFC 3986 does not allow in a path or a user name.
    private static func escape(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var out: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"), UInt8(ascii: "/"):
                out.append(byte)
            default:
                out += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: out, as: UTF8.self)
    }
}
