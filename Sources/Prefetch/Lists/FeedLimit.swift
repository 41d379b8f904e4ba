internal import Threading

/// How far a list may be queued: what waits for its shard takes room on the disk.
package final class FeedLimit: Sendable {
    /// Who sets it.
    package final class Writer: Sendable {
        package init() {}
    }

    private struct State {
        /// The index from which on nothing is queued, by who has set it.
        var ends: [ObjectIdentifier: Int] = [:]
        var isReached = false
    }

    private let state = Locked(State())

    /// * `end`: nil: as far as it goes.
    /// * `writer`: who sets it; the lowest of all holds.
    package func set(_ end: Int?, by writer: Writer) { state.withLock { $0.ends[ObjectIdentifier(writer)] = end } }

    /// The index from which on nothing is queued.
    /// * `index`: of what is queued next.
    func end(at index: Int) -> Int {
        state.withLock { state in
            let end = state.ends.values.min() ?? .max
            state.isReached = index >= end
            return end
        }
    }

    /// Whether the list waits for it.
    var isReached: Bool { state.withLock { $0.isReached } }
}
