internal import Threading

/// Ends the call to a decoder that a cancelled task waits for on its thread.
final class CodecCancellation: Sendable {
    private struct State {
        var isCancelled = false
        var child: CodecChild?
    }

    @TaskLocal private static var ofTask: CodecCancellation?
    /// That of the task that runs.
    static var current: CodecCancellation? { ofTask }

    private let state = Locked(State())

    /// Runs what may decode; if the task is cancelled, or was, the call in it throws `cancelled`.
    nonisolated(nonsending) static func guarding<Value>(
        _ body: () throws(WebImageError) -> Value
    ) async throws(WebImageError) -> Value {
        let cancellation = CodecCancellation()
        let result = await withTaskCancellationHandler {
            $ofTask.withValue(cancellation) { Result { () throws(WebImageError) in try body() } }
        } onCancel: {
            cancellation.cancel()
        }
        return try result.get()
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// A call begins; false if it is not to.
    func begin(_ child: CodecChild) -> Bool {
        state.withLock { state in
            if !state.isCancelled { state.child = child }
            return !state.isCancelled
        }
    }

    func end() { state.withLock { $0.child = nil } }

    private func cancel() {
        state.withLock { state in
            state.isCancelled = true
            state.child?.interrupt()
        }
    }
}
