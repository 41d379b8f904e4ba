package import Redis

/// Why a command of the queue failed: one sentence for the error, one for the remedy.
public struct PrefetchError: Error, Sendable, CustomStringConvertible {
    /// The kind of error; it decides the exit code (sysexits(3)).
    public enum Kind: Sendable {
        /// The list cannot be read, or has no URL (65).
        case unreadableList
        /// No such file or batch (66).
        case notFound
        /// Redis is unreachable, too old or not configured for a queue (69).
        case redisUnavailable
        /// The cache folder cannot be created or written (73).
        case cacheUnavailable
        /// The disk is full or broken (74).
        case inputOutput
        /// Stopped before the end; can be run again (75).
        case stopped
        /// Redis refused access (77).
        case refused
        /// A setting is wrong (78).
        case configuration
        /// A bug (70).
        case software
    }

    /// Decides the exit code.
    public var kind: Kind
    /// One sentence: the error.
    public var message: String
    /// One sentence: the remedy; may be empty.
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

// MARK: - Redis

extension PrefetchError {
    /// Wraps a Redis error, with the text and the exit code of the commands.
    package init(_ error: RedisError) {
        let kind: Kind =
            switch error.code {
            case .refused: .refused
            case .configuration: .configuration
            case .interrupted: .stopped
            case .unavailable, .timedOut, .transient, .outOfMemory, .protocolError: .redisUnavailable
            // Not a bug: another program has written to a key of the queue.
            case .reply: error.replyCode == "WRONGTYPE" ? .configuration : .software
            }
        let hint = error.replyCode == "WRONGTYPE" ? "see which key it is: prefetch-coord fsck" : ""
        self.init(kind, error.message, hint: error.hint ?? hint)
    }
}

/// Runs calls to Redis and wraps their errors, with the text and the exit code of the commands.
package func bridgingErrors<Success>(
    _ body: () async throws(RedisError) -> Success
) async throws(PrefetchError) -> Success {
    do throws(RedisError) { return try await body() } catch { throw PrefetchError(error) }
}
