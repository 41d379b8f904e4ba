/// Why a Redis command has no usable reply.
public struct RedisError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of failure, which determines the reaction: wait, give up, or fix the settings.
    public enum Code: String, Sendable, CaseIterable {
        /// No server is reachable, or the connection was closed.
        case unavailable
        /// The server did not reply in time.
        case timedOut
        /// The server requires other credentials, or forbids the command (NOAUTH, WRONGPASS, NOPERM).
        case refused
        /// An unusable address or server setting; it needs manual action.
        case configuration
        /// The server is temporarily unable: LOADING, MASTERDOWN, BUSY, CLUSTERDOWN, TRYAGAIN, READONLY, MISCONF.
        case transient
        /// The server is at `maxmemory` and rejects writes (OOM).
        case outOfMemory
        /// Any other error reply: an invalid command, or a key of the wrong type.
        case reply
        /// The response is not in the Redis protocol.
        case protocolError
        /// Ended on our side: cancellation, or `interrupt()`.
        case interrupted
    }

    /// The kind of failure.
    public var code: Code
    /// One sentence for humans; never contains a password.
    public var message: String
    /// Suggested remedy, if known.
    public var hint: String?
    /// First word of the server's error reply (`WRONGTYPE`), if there was a reply.
    public var replyCode: String?
    /// Whether the command may have run although no reply arrived: retry only idempotent commands.
    public var outcomeUnknown: Bool

    /// Creates an error.
    public init(
        _ code: Code, _ message: String, hint: String? = nil, replyCode: String? = nil, outcomeUnknown: Bool = false
    ) {
        self.code = code
        self.message = message
        self.hint = hint
        self.replyCode = replyCode
        self.outcomeUnknown = outcomeUnknown
    }

    /// Whether an idempotent command is worth retrying after a wait.
    public var isTransient: Bool {
        switch code {
        case .unavailable, .timedOut, .transient: true
        // Garbage after a valid start is a broken connection; garbage from the start is not a Redis server.
        case .protocolError: outcomeUnknown
        case .refused, .configuration, .outOfMemory, .reply, .interrupted: false
        }
    }

    /// The message.
    public var description: String { message }
}
