/// Why a Redis command has no usable answer.
public struct RedisError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What kind of failure it is, and with it what to do: wait, give up, or repair the settings.
    public enum Code: String, Sendable, CaseIterable {
        /// No server answers there, or the connection ended.
        case unavailable
        /// The server did not answer in time.
        case timedOut
        /// The server wants other credentials, or forbids the command to these (NOAUTH, WRONGPASS, NOPERM).
        case refused
        /// An address or a server setting that cannot work; a person has to change it.
        case configuration
        /// The server says that it cannot now: LOADING, MASTERDOWN, BUSY, CLUSTERDOWN, TRYAGAIN, READONLY, MISCONF.
        case transient
        /// The server is at `maxmemory` and takes nothing that could grow (OOM).
        case outOfMemory
        /// Any other error reply: a command that is wrong, or a key of another type.
        case reply
        /// What came is not the Redis protocol.
        case protocolError
        /// Ended by our own side: cancelled, or `interrupt()`.
        case interrupted
    }

    /// What kind of failure it is.
    public var code: Code
    /// One sentence for a person; never a password.
    public var message: String
    /// What to do about it, where that is known.
    public var hint: String?
    /// The first word of the server's error reply (`WRONGTYPE`), where a reply came.
    public var replyCode: String?
    /// Whether the command may have been executed although no reply came: only an idempotent one may be sent again.
    public var outcomeUnknown: Bool

    /// An error with its sentence.
    public init(
        _ code: Code, _ message: String, hint: String? = nil, replyCode: String? = nil, outcomeUnknown: Bool = false
    ) {
        self.code = code
        self.message = message
        self.hint = hint
        self.replyCode = replyCode
        self.outcomeUnknown = outcomeUnknown
    }

    /// Whether waiting and sending an idempotent command again can help.
    public var isTransient: Bool {
        switch code {
        case .unavailable, .timedOut, .transient: true
        // Garbage after a good start is a broken connection; garbage from the start is no Redis server.
        case .protocolError: outcomeUnknown
        case .refused, .configuration, .outOfMemory, .reply, .interrupted: false
        }
    }

    /// The message.
    public var description: String { message }
}
