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
            // Nobody's bug of ours: somebody else has written to a key of the queue.
            case .reply: error.replyCode == "WRONGTYPE" ? .configuration : .software
            }
        let hint = error.replyCode == "WRONGTYPE" ? "see which key it is: prefetch-coord fsck" : ""
        self.init(kind, error.message, hint: error.hint ?? hint)
    }
}
