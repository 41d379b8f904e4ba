package import Redis

/// Why a command of the queue cannot go on: one sentence what, one what to do.
public struct PrefetchError: Error, Sendable, CustomStringConvertible {
    /// The kind, which decides the exit code (sysexits(3)).
    public enum Kind: Sendable {
        /// The list cannot be read, or has no URL (65).
        case unreadableList
        /// No such file or batch (66).
        case notFound
        /// Redis is away, too old or not set up for a queue (69).
        case redisUnavailable
        /// The cache folder cannot be made or written (73).
        case cacheUnavailable
        /// The disk is full or broken (74).
        case inputOutput
        /// Stopped before the end; run it again (75).
        case stopped
        /// Redis refused us (77).
        case refused
        /// A setting is wrong (78).
        case configuration
        /// A bug (70).
        case software
    }

    /// The kind.
    public var kind: Kind
    /// One sentence: what.
    public var message: String
    /// One sentence: what to do; empty where there is nothing.
    public var hint: String

    /// An error with its two sentences.
    public init(_ kind: Kind, _ message: String, hint: String = "") {
        self.kind = kind
        self.message = message
        self.hint = hint
    }

    /// Both sentences.
    public var description: String { hint.isEmpty ? message : "\(message) (\(hint))" }
}

// MARK: - Of Redis

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

/// Runs what talks to Redis; its error is thrown in the words and with the exit code of the commands.
package func bridgingErrors<Success>(
    _ body: () async throws(RedisError) -> Success
) async throws(PrefetchError) -> Success {
    do throws(RedisError) { return try await body() } catch { throw PrefetchError(error) }
}
