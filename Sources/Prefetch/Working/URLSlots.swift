internal import Threading
internal import WebImage

/// How many URLs of a worker may be under way at once, first come first served.
final class URLSlots: Sendable {
    private struct Request {
        var count: Int
        var permit: DownloadPermit?
        var waiter: Waiter<Bool>
    }

    private struct State {
        var limit: Int
        var used = 0
        var requests: [Request] = []
        var isClosed = false

        /// More than there are go to one that finds all of them free.
        func hasRoom(for count: Int) -> Bool { used == 0 || used + count <= limit }
    }

    /// Rings when somebody has to wait for a slot.
    let crowd = Bell()
    private let state: Locked<State>

    /// The number of slots. With a lower one, who has a slot keeps it.
    var limit: Int {
        get { state.withLock { $0.limit } }
        set {
            state.withLock { $0.limit = newValue }
            admit()
        }
    }

    /// How many a job takes at once: a wait for each single one would be a wake-up for each URL.
    var step: Int { max(1, limit / 16) }

    /// URLs under way for so many transfers: those that wait for their next try or are stalled hold a slot, and no transfer.
    static func limit(of concurrency: Int) -> Int { max(256, 4 * concurrency) }

    init(limit: Int) { state = Locked(State(limit: limit)) }

    /// How many ask for slots and have none yet.
    var waiting: Int { state.withLock { $0.requests.count } }

    /// Slots in use.
    var used: Int { state.withLock { $0.used } }

    /// Takes `count` slots; false where the task was cancelled, the permit was taken back or the slots are closed, and then nothing
    /// is taken.
    func acquire(_ count: Int = 1, permit: DownloadPermit? = nil) async -> Bool {
        let waiter = Waiter<Bool>()
        let answer: Bool? = state.withLock { state in
            if state.isClosed || permit?.isRevoked == true { return false }
            if state.requests.isEmpty && state.hasRoom(for: count) {
                state.used += count
                return true
            }
            state.requests.append(Request(count: count, permit: permit, waiter: waiter))
            return nil
        }
        if let answer { return answer }
        crowd.ring()
        if await waiter.wait(ifCancelled: false) { return true }
        // Whoever stood behind it may have room.
        state.withLock { $0.requests.removeAll { $0.waiter === waiter } }
        admit()
        return false
    }

    /// Gives slots back.
    func release(_ count: Int = 1) {
        state.withLock { $0.used -= count }
        admit()
    }

    /// Nobody gets a slot from now on; who has one keeps it.
    func close() {
        let requests = state.withLock { state in
            state.isClosed = true
            defer { state.requests = [] }
            return state.requests
        }
        for request in requests { request.waiter.answer(false) }
    }

    /// Sends those away whose permit was taken back.
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
                // One that was cancelled takes none.
                if first.waiter.answer(true) { state.used += first.count }
            }
        }
    }
}
