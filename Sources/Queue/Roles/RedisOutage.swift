package import Redis
internal import Threading

/// Messages about a Redis that fails: the cause, and that it has recovered.
package struct RedisOutage: Sendable {
    package enum Notice: Sendable, Equatable {
        /// Calls wait for it, with the reason.
        case away(String)
        /// It has recovered, after this time.
        case back(Duration)
    }

    /// How long calls fail before that is reported. A cut connection is made again sooner, and a server that is being started answers sooner.
    private static let reportDelay = Duration.milliseconds(300)
    private var since: ContinuousClock.Instant?
    private var reported: RedisError?

    package init() {}

    /// A call failed. Transient errors are reported when calls have failed for ``reportDelay``, 0.3 s. A lost connection that was reported is
    /// followed by the reply that the server then gives instead, such as NOAUTH: that one says what to do.
    package mutating func fails(_ error: RedisError, at now: ContinuousClock.Instant = .now) -> Notice? {
        let began = since ?? now
        since = began
        if let reported {
            guard reported.replyCode == nil, error.replyCode != nil else { return nil }
        } else {
            guard now - began >= Self.reportDelay || !error.isTransient else { return nil }
        }
        reported = error
        return .away(error.message)
    }

    package mutating func answers() -> Notice? {
        defer { self = RedisOutage() }
        guard reported != nil, let since else { return nil }
        return .back(.now - since)
    }
}

final class RedisOutageReporter: Sendable {
    private let outage = Locked(RedisOutage())
    private let tell: @Sendable (RedisOutage.Notice) -> Void

    init(_ tell: @escaping @Sendable (RedisOutage.Notice) -> Void) { self.tell = tell }

    func fails(_ error: RedisError) { outage.withLock { $0.fails(error) }.map(tell) }

    func answers() { outage.withLock { $0.answers() }.map(tell) }
}
