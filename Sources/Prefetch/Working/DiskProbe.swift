internal import Threading

/// Asks a disk that does not answer, again and again, from a thread of its own that may wait for it. `Heartbeat` decides that it does not.
final class DiskProbe: Sendable {
    private enum State {
        case idle, asking, answered
    }

    private let state = Locked(State.idle)
    /// Made with the first question: most workers have none.
    private let threads = Locked<ThreadPool?>(nil)

    /// Whether the last question was answered.
    var hasAnswered: Bool { state.withLock { $0 == .answered } }

    /// An answer of before is none any more.
    func forget() { state.withLock { if $0 == .answered { $0 = .idle } } }

    /// Asks, unless it waits for an answer. Returns at once.
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
