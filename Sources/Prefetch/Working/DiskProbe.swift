internal import Threading

/// Probes a disk that does not respond from its own thread, which may block. `Heartbeat` decides when.
final class DiskProbe: Sendable {
    private enum State {
        case idle, asking, answered
    }

    private let state = Locked(State.idle)
    /// Created with the first probe: most workers need none.
    private let threads = Locked<ThreadPool?>(nil)

    var hasAnswered: Bool { state.withLock { $0 == .answered } }

    func forget() { state.withLock { if $0 == .answered { $0 = .idle } } }

    /// Starts a probe, unless one is running. Returns at once.
    func start(_ probe: @escaping @Sendable () -> Void) {
        let isIdle = state.withLock { state in
            defer { if state == .idle { state = .asking } }
            return state == .idle
        }
        guard isIdle else { return }
        let pool = threads.withLock { threads in
            let pool = threads ?? ThreadPool(threads: 1, name: "probe")
            threads = pool
            return pool
        }
        Task(executorPreference: pool) {
            probe()
            self.state.withLock { $0 = .answered }
        }
    }
}
