internal import Threading
internal import WebImage

/// How many URLs of a worker may be under way at once, first come first served.
final class URLSlots: Sendable {
    private struct Waiter {
        var id: Int
        var count: Int
        var permit: DownloadPermit?
        var continuation: UnsafeContinuation<Bool, Never>
    }

    private struct State {
        var limit: Int
        var used = 0
        var next = 0
        var waiters: [Waiter] = []
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
    var waiting: Int { state.withLock { $0.waiters.count } }

    /// Slots in use.
    var used: Int { state.withLock { $0.used } }

    /// Takes `count` slots; false where the task was cancelled, the permit was taken back or the slots are closed, and then nothing
    /// is taken.
    func acquire(_ count: Int = 1, permit: DownloadPermit? = nil) async -> Bool {
        let isFree = state.withLock { state in
            guard !state.isClosed, state.waiters.isEmpty, state.hasRoom(for: count), permit?.isRevoked != true
            else { return false }
            state.used += count
            return true
        }
        if isFree { return true }
        let id = state.withLock { state in
            state.next += 1
            return state.next
        }
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer: Bool? = state.withLock { state in
                    if state.isClosed || Task.isCancelled || permit?.isRevoked == true { return false }
                    if state.waiters.isEmpty && state.hasRoom(for: count) {
                        state.used += count
                        return true
                    }
                    state.waiters.append(Waiter(id: id, count: count, permit: permit, continuation: continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) } else { crowd.ring() }
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter? in
                guard let index = state.waiters.firstIndex(where: { $0.id == id }) else { return nil }
                return state.waiters.remove(at: index)
            }
            waiter?.continuation.resume(returning: false)
            admit()
        }
    }

    /// Gives slots back.
    func release(_ count: Int = 1) {
        state.withLock { $0.used -= count }
        admit()
    }

    /// Nobody gets a slot from now on; who has one keeps it.
    func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume(returning: false) }
    }

    /// Sends those away whose permit was taken back.
    func dismissRevoked() {
        let dismissed = state.withLock { state in
            let dismissed = state.waiters.filter { $0.permit?.isRevoked == true }
            state.waiters.removeAll { $0.permit?.isRevoked == true }
            return dismissed
        }
        for waiter in dismissed { waiter.continuation.resume(returning: false) }
        if !dismissed.isEmpty { admit() }
    }

    private func admit() {
        let admitted = state.withLock { state in
            var count = 0
            while count < state.waiters.count, state.hasRoom(for: state.waiters[count].count) {
                state.used += state.waiters[count].count
                count += 1
            }
            defer { state.waiters.removeFirst(count) }
            return Array(state.waiters.prefix(count))
        }
        for waiter in admitted { waiter.continuation.resume(returning: true) }
    }
}
