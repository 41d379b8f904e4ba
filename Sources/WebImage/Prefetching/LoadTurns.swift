internal import DequeModule
internal import Threading

/// The turns of a prefetcher's loads: so many at once, by the priority of their lists, none while it or their list is paused.
final class LoadTurns: Sendable {
    private struct Waiting {
        let list: ObjectIdentifier
        let continuation: UnsafeContinuation<Bool, Never>
    }

    private struct State {
        var limit: Int
        var running = 0
        var isPaused = false
        var paused: Set<ObjectIdentifier> = []
        /// By priority.
        var waiting: [Deque<Waiting>] = PrefetchPriority.allCases.map { _ in [] }

        /// The next load that may run; it counts as running.
        mutating func next() -> Waiting? {
            guard !isPaused, running < limit else { return nil }
            for rank in waiting.indices {
                guard let index = waiting[rank].firstIndex(where: { !paused.contains($0.list) }) else { continue }
                running += 1
                return waiting[rank].remove(at: index)
            }
            return nil
        }
    }

    private let state: Locked<State>

    init(_ limit: Int) { state = Locked(State(limit: limit)) }

    /// At least 1.
    var limit: Int {
        get { state.withLock { $0.limit } }
        set {
            state.withLock { $0.limit = max(1, newValue) }
            admit()
        }
    }

    /// Loads that wait for a turn.
    var waitingCount: Int { state.withLock { $0.waiting.reduce(0) { $0 + $1.count } } }

    var isPaused: Bool {
        get { state.withLock { $0.isPaused } }
        set {
            state.withLock { $0.isPaused = newValue }
            admit()
        }
    }

    func isPaused(_ list: ObjectIdentifier) -> Bool { state.withLock { $0.paused.contains(list) } }

    func setPaused(_ isPaused: Bool, _ list: ObjectIdentifier) {
        state.withLock { state in
            if isPaused { state.paused.insert(list) } else { state.paused.remove(list) }
        }
        admit()
    }

    /// Moves the waiting loads of a list to another priority.
    func move(_ list: ObjectIdentifier, to priority: PrefetchPriority) {
        state.withLock { state in
            var moved: [Waiting] = []
            for rank in state.waiting.indices {
                moved += state.waiting[rank].filter { $0.list == list }
                state.waiting[rank].removeAll { $0.list == list }
            }
            state.waiting[priority.rank].append(contentsOf: moved)
        }
    }

    /// Lets the waiting loads of a list go without a turn: it has been cancelled.
    func dismiss(_ list: ObjectIdentifier) {
        let dismissed = state.withLock { state in
            state.paused.remove(list)
            var dismissed: [Waiting] = []
            for rank in state.waiting.indices {
                dismissed += state.waiting[rank].filter { $0.list == list }
                state.waiting[rank].removeAll { $0.list == list }
            }
            return dismissed
        }
        for waiting in dismissed { waiting.continuation.resume(returning: false) }
    }

    /// Runs `body` in turn; nil if the list was dismissed first.
    func run<Result: Sendable>(
        _ list: ObjectIdentifier, _ priority: PrefetchPriority, _ body: () async -> Result
    ) async -> Result? {
        let hasTurn = await withUnsafeContinuation { continuation in
            state.withLock { state in
                state.waiting[priority.rank].append(Waiting(list: list, continuation: continuation))
            }
            admit()
        }
        guard hasTurn else { return nil }
        let result = await body()
        state.withLock { $0.running -= 1 }
        admit()
        return result
    }

    private func admit() {
        while let waiting = state.withLock({ $0.next() }) { waiting.continuation.resume(returning: true) }
    }
}

extension PrefetchPriority {
    fileprivate var rank: Int { Self.allCases.firstIndex(of: self) ?? 1 }
}
