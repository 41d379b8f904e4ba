extension RedisReplyError {
    /// The target of a `MOVED 3999 127.0.0.1:6381` from `node`; nil for any other reply.
    ///
    /// ASK is waited out, not followed. The slot is migrating and its keys are split over two nodes. Our scripts touch many keys: on the
    /// other node they would find a batch without its jobs, or none, and act on it. After the last key the reply is MOVED.
    func redirection(from node: RedisConfiguration.Endpoint) -> RedisConfiguration.Endpoint? {
        let words = text.split(separator: " ")
        // IPv6 addresses come without brackets: the last colon precedes the port.
        guard words.count >= 3, words[0] == "MOVED", let colon = words[2].lastIndex(of: ":"),
            let port = Int(words[2][words[2].index(after: colon)...])
        else { return nil }
        return node.neighbour(host: String(words[2][..<colon]), port: port)
    }
}

extension RedisConfiguration.Endpoint {
    /// Another node as named by this one. An empty host means the same host; `?` means unknown.
    func neighbour(host: String, port: Int) -> RedisConfiguration.Endpoint? {
        guard (1...65535).contains(port), host != "?" else { return nil }
        guard host.isEmpty else { return .tcp(host: host, port: port) }
        switch self {
        case .tcp(let own, _): return .tcp(host: own, port: port)
        // A Unix socket is on this machine.
        case .unix: return .tcp(host: "127.0.0.1", port: port)
        }
    }
}
