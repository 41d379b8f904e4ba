internal import Threading

/// Bodies that were received, and are not checked and stored yet. Some may wait so that threads that check find one; any further one holds
/// the slot of its transfer: a downloader that is faster than the checks would fill the memory. Thread-safe.
final class UncheckedBodies: Sendable {
    private struct State {
        var count = 0
        /// The downloader's thread waits for a slot, and is woken at this count.
        var wakesAt: Int?
    }

    /// How many hold no slot.
    static let free = max(16, 2 * Processors.count)
    private let state = Locked(State())
    /// Wakes the downloader's thread, from any thread.
    private let wake: @Sendable () -> Void

    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    /// Whether a download is counted from its end until ``remove()``: one with a body.
    static func counts(_ image: DownloadedImage) -> Bool { image.body.count > 0 }

    func add() { state.withLock { $0.count += 1 } }

    func remove() {
        let wakes = state.withLock { state in
            state.count -= 1
            guard let count = state.wakesAt, state.count <= count else { return false }
            state.wakesAt = nil
            return true
        }
        if wakes { wake() }
    }

    /// The slots that they hold.
    var heldSlots: Int { state.withLock { max(0, $0.count - Self.free) } }

    /// Slots in use: by transfers, and by them.
    func usedSlots(active: Int) -> Int { active + heldSlots }

    /// Whether all slots are in use. If they hold some, the thread is woken when an eighth of all is free again.
    /// * `active`: slots in use by transfers.
    func areSlotsFull(limit: Int, active: Int) -> Bool {
        state.withLock { state in
            let held = max(0, state.count - Self.free)
            guard active + held >= limit else { return false }
            if held > 0 { state.wakesAt = max(Self.free, state.count - max(1, limit / 8)) }
            return true
        }
    }
}
