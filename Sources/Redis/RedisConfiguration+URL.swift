extension RedisConfiguration {
    /// Linux limit for the path of a Unix socket (`sun_path`, unix(7)); hiredis 0.14 would truncate a longer one silently.
    static let maxSocketPath = 107

    /// Parses an address in the usual form of Redis clients.
    ///
    /// `redis://[user[:password]@]host[:port][/db]`, or `valkey://`; for a Unix socket `unix:///path?db=1`, `redis+socket:///path?db=1` or
    /// `redis-socket:///path?db=1`. User, password, database and path may be percent-encoded (`p%40ss`); `user=`, `password=` and `db=` are
    /// also accepted in the query. `rediss://` and `valkeys://` use TLS, with `cacert=`, `cert=`, `key=` and `sni=` in the query, named
    /// after redis-cli's options.
    /// - Throws: a ``RedisError`` with code `configuration` and a hint; its text never contains the password.
    public init(url: String) throws(RedisError) {
        guard let (scheme, rest) = url.split(at: "://"), !scheme.isEmpty else {
            throw Self.invalid("has no scheme", hint: "write it as redis://127.0.0.1:6379 or unix:///run/redis.sock")
        }
        switch scheme.lowercased() {
        case "redis", "valkey": try self.init(tcp: rest, tls: nil)
        case "unix", "redis+socket", "redis-socket": try self.init(socket: rest)
        case "rediss", "valkeys":
            guard RedisTLS.isBuiltIn else { throw RedisTLS.notBuiltIn }
            try self.init(tcp: rest, tls: RedisTLS())
            try tls?.validate()
        default:
            throw Self.invalid(
                "has a scheme that is not known",
                hint: "use redis://, rediss:// (TLS), valkey://, unix:// or redis+socket://")
        }
    }

    private init(tcp text: Substring, tls: RedisTLS?) throws(RedisError) {
        self.init(tls: tls)
        let (front, query) = Self.cut(text, at: "?")
        let (authority, path) = Self.cut(front, at: "/")
        let address = try readCredentials(of: authority)
        var host = address
        var port = 6379
        if address.hasPrefix("[") {
            guard let end = address.firstIndex(of: "]") else { throw Self.invalid("has an IPv6 address without ']'") }
            host = address[address.index(after: address.startIndex)..<end]
            let after = address[address.index(after: end)...]
            guard after.isEmpty || after.hasPrefix(":") else {
                throw Self.invalid("has something after its IPv6 address")
            }
            if after.count > 1 { port = try Self.port(after.dropFirst()) }
            guard !host.isEmpty else { throw Self.invalid("has no host between its brackets") }
        } else if let colon = address.firstIndex(of: ":") {
            host = address[..<colon]
            port = try Self.port(address[address.index(after: colon)...])
        }
        let name = host.isEmpty ? "127.0.0.1" : try Self.decode(host)
        guard !name.utf8.contains(where: { $0 <= 32 || $0 == 127 }) else {
            throw Self.invalid("has a blank or a control character in its host")
        }
        endpoint = .tcp(host: name, port: port)
        if let path, !path.isEmpty { database = try Self.database(path) }
        try read(query: query, databaseIsSet: path?.isEmpty == false)
    }

    private init(socket text: Substring) throws(RedisError) {
        self.init()
        let (front, query) = Self.cut(text, at: "?")
        guard let slash = front.firstIndex(of: "/") else {
            throw Self.invalid("has no absolute path", hint: "write three slashes: unix:///run/redis.sock")
        }
        guard try readCredentials(of: front[..<slash]).isEmpty else {
            throw Self.invalid(
                "names a host before the path of a socket", hint: "write three slashes: unix:///run/redis.sock")
        }
        let path = try Self.decode(front[slash...])
        guard path.utf8.count > 1 else { throw Self.invalid("has no path of a socket") }
        guard path.utf8.count <= Self.maxSocketPath else {
            throw Self.invalid(
                "has a socket path of \(path.utf8.count) bytes; Linux allows \(Self.maxSocketPath)",
                hint: "use a shorter directory, or a symbolic link to it")
        }
        endpoint = .unix(path: path)
        try read(query: query, databaseIsSet: false)
    }

    /// Strips `user:password@` and returns the rest. Splits at the last `@`, because passwords often contain an unescaped one.
    private mutating func readCredentials(of authority: Substring) throws(RedisError) -> Substring {
        guard let at = authority.lastIndex(of: "@") else { return authority }
        let (user, password) = Self.cut(authority[..<at], at: ":")
        if !user.isEmpty { username = try Self.decode(user) }
        if let password, !password.isEmpty { self.password = try Self.decode(password) }
        return authority[authority.index(after: at)...]
    }

    private mutating func read(query: Substring?, databaseIsSet: Bool) throws(RedisError) {
        guard let query else { return }
        for item in query.split(separator: "&") {
            let (name, value) = Self.cut(item, at: "=")
            guard let value else { throw Self.invalid("has a parameter without a value: \(name)") }
            switch name {
            case "db", "database", "virtual_host":
                let number = try Self.database(value)
                guard !databaseIsSet || number == database else { throw Self.invalid("names two different databases") }
                database = number
            case "user", "username": username = try Self.decode(value)
            case "password": password = try Self.decode(value)
            case "cacert", "cert", "key", "sni":
                guard tls != nil else {
                    throw Self.invalid("has a parameter of TLS: \(name)", hint: "write it as rediss://")
                }
                tls?.set(String(name), to: try Self.decode(value))
            default:
                throw Self.invalid(
                    "has an unknown parameter: \(name)",
                    hint: "known are db, user and password, and with rediss:// cacert, cert, key and sni")
            }
        }
    }

    private static func port(_ text: Substring) throws(RedisError) -> Int {
        guard text.utf8.allSatisfy(isDigit), let number = Int(text), (1...65535).contains(number) else {
            throw invalid("has a port that is not a number from 1 to 65535")
        }
        return number
    }

    private static func database(_ text: Substring) throws(RedisError) -> Int {
        guard text.utf8.allSatisfy(isDigit), let number = Int(text), number <= Int32.max else {
            throw invalid("has a database that is not a number", hint: "write it as redis://host:6379/1")
        }
        return number
    }

    private static func decode(_ text: Substring) throws(RedisError) -> String {
        var out: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                out.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(hexValue), let low = rest.popFirst().flatMap(hexValue) else {
                throw invalid("has a '%' without two hexadecimal digits", hint: "write a '%' itself as %25")
            }
            out.append(high << 4 | low)
        }
        guard !out.contains(0), let decoded = String(validating: out, as: UTF8.self) else {
            throw invalid("has a percent-encoded character that cannot stand there")
        }
        return decoded
    }

    private static func cut(_ text: Substring, at separator: Character) -> (Substring, Substring?) {
        guard let index = text.firstIndex(of: separator) else { return (text, nil) }
        return (text[..<index], text[text.index(after: index)...])
    }

    private static func invalid(_ what: String, hint: String? = nil) -> RedisError {
        RedisError(.configuration, "the Redis address \(what)", hint: hint)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension String {
    /// Splits at the first `separator` of several characters; the standard library needs a regex for this.
    fileprivate func split(at separator: String) -> (Substring, Substring)? {
        var index = startIndex
        while index < endIndex {
            if self[index...].hasPrefix(separator) {
                return (self[..<index], self[self.index(index, offsetBy: separator.count)...])
            }
            index = self.index(after: index)
        }
        return nil
    }
}
