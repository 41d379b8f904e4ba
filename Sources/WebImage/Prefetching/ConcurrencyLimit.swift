internal import DequeModule
internal import Threading

/// Limits the number of concurrent loads, first come first served.
final class ConcurrencyLimit: Sendable {
    private struct State {
        var free: Int
        var waiting: Deque<UnsafeContinuation<Void, Never>> = []
    }

    private let state: Locked<State>

    init(_ count: Int) {
        state = Locked(State(free: count))
    }

    /// Runs `body` in turn. A cancelled task also waits for its turn; its `body` should return immediately.
    func run<Result: Sendable>(_ body: () async -> Result) async -> Result {
        await withUnsafeContinuation { continuation in
            let goesAhead = state.withLock { state in
                if state.free == 0 {
                    state.waiting.append(continuation)
                    return false
                }
                state.free -= 1
                return true
            }
            if goesAhead { continuation.resume() }
        }
        let result = await body()
        let next = state.withLock { state in
            let next = state.waiting.popFirst()
            if next == nil { state.free += 1 }
            return next
        }
        next?.resume()
        return result
    }
}
