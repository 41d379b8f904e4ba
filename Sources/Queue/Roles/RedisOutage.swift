package import Redis
internal import Threading

/// What a person is told of a Redis that does not do as it is told: once why, and once that it does again.
package struct RedisOutage: Sendable {
    /// What there is to say.
    package enum Notice: Sendable, Equatable {
        /// It is waited for, with the reason.
        case away(String)
        /// It does as it is told again, after so long.
        case back(Duration)
    }

    private var failures = 0
    private var since: ContinuousClock.Instant?
    private var isSaid = false

    /// Nothing has failed yet.
    package init() {}

    /// A call failed. A connection that was cut is there again at once, and nobody has to know.
    package mutating func fails(_ error: RedisError) -> Notice? {
        failures += 1
        since = since ?? .now
        guard !isSaid, failures > 1 || !error.isTransient else { return nil }
        isSaid = true
        return .away(error.message)
    }

    /// A call succeeded.
    package mutating func answers() -> Notice? {
        defer { self = RedisOutage() }
        guard isSaid, let since else { return nil }
        return .back(.now - since)
    }
}

/// The same for all calls of a queue, whoever makes them.
final class RedisOutageTeller: Sendable {
    private let outage = Locked(RedisOutage())
    private let tell: @Sendable (RedisOutage.Notice) -> Void

    init(_ tell: @escaping @Sendable (RedisOutage.Notice) -> Void) { self.tell = tell }

    func fails(_ error: RedisError) { outage.withLock { $0.fails(error) }.map(tell) }

    func answers() { outage.withLock { $0.answers() }.map(tell) }
}
