internal import Threading

/// A shared or exclusive lock for decodes, first come first served: waiting exclusive decodes are not overtaken.
package final class DecodeLock: Sendable {
    private struct Waiter {
        var isAlone: Bool
        var continuation: UnsafeContinuation<Void, Never>
    }

    private struct State {
        var running = 0
        var isAlone = false
        var waiters: [Waiter] = []

        mutating func begin(alone: Bool) -> Bool {
            guard !isAlone, running == 0 || !alone else { return false }
            running += 1
            isAlone = alone
            return true
        }
    }

    private let state = Locked(State())

    /// Whether a cancelled task ends the call to a decoder that it waits for.
    private let endsCalls: Bool

    package init(endsCalls: Bool = false) { self.endsCalls = endsCalls }

    package var waiting: Int { state.withLock { $0.waiters.count } }

    /// Waits for a turn; not cancellable, because it only takes as long as the running decodes.
    package nonisolated(nonsending) func begin(alone: Bool) async {
        if state.withLock({ $0.waiters.isEmpty && $0.begin(alone: alone) }) { return }
        await withUnsafeContinuation { continuation in
            let begins = state.withLock { state in
                if state.waiters.isEmpty && state.begin(alone: alone) { return true }
                state.waiters.append(Waiter(isAlone: alone, continuation: continuation))
                return false
            }
            if begins { continuation.resume() }
        }
    }

    /// Runs a check concurrently with others; alone, if there is somebody to be told: `decodesExclusively` is called with true when it
    /// starts, and with false after it. The request's note is taken meanwhile.
    nonisolated(nonsending) func run<Value>(
        _ request: LoadRequest, _ body: () throws(WebImageError) -> Value
    ) async throws(WebImageError) -> Value {
        let didChangeExclusive = request.decodesExclusively
        await begin(alone: didChangeExclusive != nil)
        await didChangeExclusive?(true)
        let result: Result<Value, WebImageError>
        do throws(WebImageError) { result = .success(try await decode(request, body)) } catch {
            result = .failure(error)
        }
        await didChangeExclusive?(false)
        end()
        return try result.get()
    }

    /// Runs a look-up, which decodes an image whose level is too low: that of a suspect alone.
    nonisolated(nonsending) func lookUp<Value>(
        _ request: LoadRequest, _ body: () throws(WebImageError) -> Value
    ) async throws(WebImageError) -> Value {
        request.decodesExclusively == nil ? try await decode(request, body) : try await run(request, body)
    }

    private nonisolated(nonsending) func decode<Value>(
        _ request: LoadRequest, _ body: () throws(WebImageError) -> Value
    ) async throws(WebImageError) -> Value {
        guard endsCalls else { return try DecodeNote.taking(request.decodeNote, body) }
        return try await CodecCancellation.guarding { () throws(WebImageError) in
            try DecodeNote.taking(request.decodeNote, body)
        }
    }

    package func end() {
        let admitted = state.withLock { state -> [Waiter] in
            state.running -= 1
            state.isAlone = false
            var admitted: [Waiter] = []
            while let first = state.waiters.first, state.begin(alone: first.isAlone) {
                admitted.append(state.waiters.removeFirst())
            }
            return admitted
        }
        for waiter in admitted { waiter.continuation.resume() }
    }
}
