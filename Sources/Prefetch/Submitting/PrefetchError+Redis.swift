package import Redis

extension PrefetchError {
    /// A Redis error in the words and with the exit code of the commands.
    package init(_ error: RedisError) {
        let kind: Kind =
            switch error.code {
            case .refused: .refused
            case .configuration: .configuration
            case .interrupted: .stopped
            case .unavailable, .timedOut, .transient, .outOfMemory, .protocolError: .redisUnavailable
            case .reply: .software
            }
        self.init(kind, error.message, hint: error.hint ?? "")
    }
}
