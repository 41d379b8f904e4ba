internal import Threading
internal import WebImage

/// Limits the started URLs of a worker: the highest priority first, of one priority the first come.
final class URLSlots: Sendable {
    private struct Request {
        var count: Int
        var priority: PrefetchPriority
        var permit: DownloadPermit?
        var waiter: Waiter<Bool>
    }

    private struct State {
        var limit: Int
        var used = 0
        var requests: [Request] = []
        var isClosed = false

        /// A request for more slots than exist is granted only when all are free.
        func hasRoom(for count: Int) -> Bool { used == 0 || used + count <= limit }
    }

    /// Rings when a request has to wait.
    let crowd = WakeSignal()
    private let state: Locked<State>

    /// Number of slots. Lowering it does not take slots away.
    var limit: Int {
        get { state.withLock { $0.limit } }
        set {
            state.withLock { $0.limit = newValue }
            admit()
        }
    }

    /// How many slots a job takes at once: waiting for single ones would cost a wake-up per URL.
    var step: Int { max(1, limit / 16) }

    /// Slots for a number of concurrent transfers: stalled URLs and those waiting for a retry hold a slot, but no transfer.
    static func limit(of concurrency: Int) -> Int { max(256, 4 * concurrency) }

    init(limit: Int) { state = Locked(State(limit: limit)) }

    var waiting: Int { state.withLock { $0.requests.count } }

    var used: Int { state.withLock { $0.used } }

    /// Takes `count` slots; false, without taking any, if the task was cancelled, the permit was revoked or the slots are closed.
    func acquire(
        _ count: Int = 1, priority: PrefetchPriority = .normal, permit: DownloadPermit? = nil
    ) async -> Bool {
        let waiter = Waiter<Bool>()
        let answer: Bool? = state.withLock { state in
            if state.isClosed || permit?.isRevoked == true { return false }
            if state.requests.isEmpty && state.hasRoom(for: count) {
                state.used += count
                return true
            }
            let place = state.requests.firstIndex { priority.isAbove($0.priority) } ?? state.requests.count
            state.requests.insert(
                Request(count: count, priority: priority, permit: permit, waiter: waiter), at: place)
            return nil
        }
        if let answer { return answer }
        crowd.ring()
        if await waiter.wait(ifCancelled: false) { return true }
        // The next requests may fit now.
        state.withLock { $0.requests.removeAll { $0.waiter === waiter } }
        admit()
        return false
    }

    func release(_ count: Int = 1) {
        state.withLock { $0.used -= count }
        admit()
    }

    /// Refuses all requests from now on; slots in use stay.
    func close() {
        let requests = state.withLock { state in
            state.isClosed = true
            defer { state.requests = [] }
            return state.requests
        }
        for request in requests { request.waiter.answer(false) }
    }

    func dismissRevoked() {
        let dismissed = state.withLock { state in
            defer { state.requests.removeAll { $0.permit?.isRevoked == true } }
            return state.requests.filter { $0.permit?.isRevoked == true }
        }
        for request in dismissed { request.waiter.answer(false) }
        if !dismissed.isEmpty { admit() }
    }

    private func admit() {
        state.withLock { state in
            while let first = state.requests.first, state.hasRoom(for: first.count) {
                state.requests.removeFirst()
                // A cancelled request takes none.
                if first.waiter.answer(true) { state.used += first.count }
            }
        }
    }
}
