/// Decides from samples of a fixed number of transfers whether connections are kept that no transfer uses: not while connects fail on several
/// hosts and there are more connections than transfers, since a router that limits them counts all. With `auto`,
/// ``ConcurrencyController`` decides.
///
/// Without clock or socket of its own.
package struct ConnectionWatch: Sendable {
    /// Whether connections are to be kept that no transfer uses.
    package private(set) var keepsIdleConnections = true
    /// Whether connections have just been closed, so that connects may still fail for their sake.
    package var makesRoom: Bool { !keepsIdleConnections && now < watchesFrom }
    private var failures = FailureWatch()
    /// Seconds of all samples, from when failures count, and until when connections are closed.
    private var now = 0.0, watchesFrom = 0.0, closedUntil = 0.0
    private var closedSeconds = Self.firstSeconds

    /// Seconds for which connections are closed, at first and at most.
    private static let (firstSeconds, mostSeconds) = (30.0, 600.0)
    /// Lost first packets are sent again after one and three seconds (RFC 6298): until then failures are those of before.
    private static let repetitionDelay = 3.25

    package init() {}

    /// Takes what happened since the last sample, 250 to 500 ms ago.
    package mutating func take(_ sample: TransferSample) {
        guard sample.seconds > 0 else { return }
        now += sample.seconds
        if !keepsIdleConnections, now >= closedUntil { keepsIdleConnections = true }
        guard now >= watchesFrom, case .trouble(let trouble) = failures.add(sample, at: now), trouble.kind == .connect
        else { return }
        watchesFrom = now + Self.repetitionDelay
        defer { failures.clear() }
        if keepsIdleConnections {
            guard sample.connections > sample.running + sample.running / 8 else { return }
            (keepsIdleConnections, closedUntil) = (false, now + closedSeconds)
            closedSeconds = min(Self.mostSeconds, closedSeconds * 2)
        } else if !Self.answerOtherwise(sample.failures) {
            // It did not help: the list has hosts that died.
            failures.accept()
            keepsIdleConnections = true
        }
    }

    /// Whether some of the hosts that fail answer other transfers meanwhile, so that they are not dead: others may share the router.
    private static func answerOtherwise(_ failures: [TransferSample.HostFailure]) -> Bool {
        failures.contains { $0.answers > 0 }
    }
}
