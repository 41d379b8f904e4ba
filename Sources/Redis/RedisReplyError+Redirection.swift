extension RedisReplyError {
    /// Where `MOVED 3999 127.0.0.1:6381` sends a client of `node`; nil for any other reply.
    ///
    /// ASK is not followed but waited out. It says that the slot is on its way, some of its keys here and some there, and our scripts
    /// touch many keys: run at the other node they would find a batch without its jobs, or no batch at all, and act on it. When the last
    /// key has moved the reply is MOVED.
    func redirection(from node: RedisConfiguration.Endpoint) -> RedisConfiguration.Endpoint? {
        let words = text.split(separator: " ")
        // An IPv6 address comes without brackets: the last colon is the port's.
        guard words.count >= 3, words[0] == "MOVED", let colon = words[2].lastIndex(of: ":"),
            let port = Int(words[2][words[2].index(after: colon)...])
        else { return nil }
        return node.neighbour(host: String(words[2][..<colon]), port: port)
    }
}

extension RedisConfiguration.Endpoint {
    /// Another node as this one names it. No host means this one's; `?` means that it does not know.
    func neighbour(host: String, port: Int) -> RedisConfiguration.Endpoint? {
        guard (1...65535).contains(port), host != "?" else { return nil }
        guard host.isEmpty else { return .tcp(host: host, port: port) }
        switch self {
        case .tcp(let own, _): return .tcp(host: own, port: port)
        // A socket is this machine.
        case .unix: return .tcp(host: "127.0.0.1", port: port)
        }
    }
}
