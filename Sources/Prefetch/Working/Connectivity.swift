internal import Threading
internal import WebImage

/// What a worker knows of its own network: the failures that may be due to it, its last success, and whether it is out of order.
///
/// URLs report from their threads; ``WitnessLoop`` decides.
final class Connectivity: Sendable {
    /// Why the network is out of order, and what tells that it is in order again.
    struct Fault: Sendable {
        enum Cause: Sendable {
            /// No image that others fetched can be fetched here: until one can.
            case witnesses
            /// No route or no proxy: until a URL meets another end.
            case route
            /// The resolver is silent: until it answers.
            case resolver
        }

        var cause: Cause
        var message: String
        /// A URL that met it.
        var url: String
    }

    private struct State {
        var lastSuccess: ContinuousClock.Instant?
        var lastAnswer: ContinuousClock.Instant?
        /// Of those since the last ``takeWitnesses()``.
        var fetched: [QueueHosts.Witness] = []
        var fault: Fault?
    }

    /// How long a success proves that the network is in order.
    static let proof = Duration.seconds(5)
    private static let mostFetched = 4

    /// Closed while the network is out of order: nothing starts, and nothing is claimed.
    let gate: FaultGate
    let failures: UndecidedFailures
    /// Rings when there is something for ``WitnessLoop``.
    let bell: WakeSignal
    private let state = Locked(State())

    /// * `onEvent`: called with the fault as it begins, and when it is over.
    init(onEvent: @escaping @Sendable (PrefetchWorker.Event) -> Void) {
        let bell = WakeSignal()
        self.bell = bell
        gate = FaultGate { message in onEvent(message.map { .paused($0) } ?? .resumed) }
        failures = UndecidedFailures(bell: bell)
    }

    /// An image was fetched: what failed before was not this machine's fault.
    /// * `rate`: requests per second that its host may be sent.
    func didSucceed(_ url: String, rate: @autoclosure () -> Double?) {
        let now = ContinuousClock.now
        let isFirst = state.withLock { state in
            state.lastSuccess = now
            guard state.fetched.count < Self.mostFetched else { return false }
            state.fetched.append(QueueHosts.Witness(url: url, rate: rate()))
            return state.fetched.count == 1
        }
        failures.settle(before: now, as: .theirs)
        if isFirst { bell.ring() }
    }

    /// A host answered that others know, or a URL's own, with something else than a page.
    func didHear() { state.withLock { $0.lastAnswer = .now } }

    var lastSuccess: ContinuousClock.Instant? { state.withLock { $0.lastSuccess } }
    var lastAnswer: ContinuousClock.Instant? { state.withLock { $0.lastAnswer } }

    /// Whether there was a success a moment ago, or an answer.
    var isProven: Bool {
        let last = [lastSuccess, lastAnswer].compactMap { $0 }.max()
        return last.map { .now - $0 < Self.proof } ?? false
    }

    /// Some of the images fetched since the last call.
    func takeWitnesses() -> [QueueHosts.Witness] {
        state.withLock { state in
            defer { state.fetched = [] }
            return state.fetched
        }
    }

    var fault: Fault? { state.withLock { $0.fault } }

    /// The network is out of order: failures are its own from now on.
    func fall(_ fault: Fault) {
        let isNew = state.withLock { state in
            guard state.fault == nil else { return false }
            state.fault = fault
            return true
        }
        guard isNew else { return }
        gate.close(fault.message, by: .network)
        failures.close(as: .ours)
        bell.ring()
    }

    func mend() {
        state.withLock { $0.fault = nil }
        failures.reopen()
        gate.reopen(.network)
    }

    /// The worker leaves: what is held stays open.
    func leave() {
        failures.close(as: .open)
        gate.open()
    }
}
