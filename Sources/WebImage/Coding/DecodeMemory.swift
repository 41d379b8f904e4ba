internal import Threading

/// Limits the memory of all concurrent decodes: a decode that would exceed it waits, first come first served.
///
/// A decode that needs more than the limit waits until no other decode runs, and then runs alone.
public final class DecodeMemory: Sendable {
    private struct Waiter {
        var count: Int
        var latch: BlockingLatch
    }

    private struct State {
        var used = 0
        var peak = 0
        var waiters: [Waiter] = []

        mutating func take(_ count: Int, of limit: Int) -> Bool {
            guard used == 0 || count <= limit - used else { return false }
            used += count
            peak = max(peak, used)
            return true
        }
    }

    /// The instance shared by the process: 256 MiB.
    public static let shared = DecodeMemory()

    /// In bytes, at least 1.
    public let limit: Int
    private let state = Locked(State())

    /// - Parameter limit: bytes that all decodes together may allocate, 256 MiB by default; at least 1.
    public init(limit: Int = 256 << 20) {
        self.limit = max(1, limit)
    }

    package var used: Int { state.withLock { $0.used } }
    package var peak: Int { state.withLock { $0.peak } }
    package var waiting: Int { state.withLock { $0.waiters.count } }

    /// Reserves bytes for a decode; blocks the thread until they are available.
    package func acquire(_ count: Int) {
        let latch = state.withLock { state -> BlockingLatch? in
            if state.waiters.isEmpty && state.take(count, of: limit) { return nil }
            let latch = BlockingLatch()
            state.waiters.append(Waiter(count: count, latch: latch))
            return latch
        }
        latch?.wait()
    }

    package func release(_ count: Int) {
        let admitted = state.withLock { state -> [Waiter] in
            state.used -= count
            var admitted: [Waiter] = []
            while let first = state.waiters.first, state.take(first.count, of: limit) {
                admitted.append(state.waiters.removeFirst())
            }
            return admitted
        }
        for waiter in admitted { waiter.latch.open() }
    }
}
