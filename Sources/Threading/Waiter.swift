/// One task waiting for one answer or for cancellation. The first answer counts, in whatever order answer, wait and cancellation happen.
/// Code that queues tasks keeps waiters and skips those that reject its answer.
package final class Waiter<Answer: Sendable>: Sendable {
    private enum State {
        case fresh
        case waiting(UnsafeContinuation<Answer, Never>)
        case answered(Answer)
    }

    private let state = Locked(State.fresh)

    package init() {}

    package var isAnswered: Bool {
        state.withLock { if case .answered = $0 { true } else { false } }
    }

    /// Ends the wait.
    /// - Returns: false if it already had an answer.
    @discardableResult
    package func answer(_ answer: Answer) -> Bool {
        let (isFirst, continuation): (Bool, UnsafeContinuation<Answer, Never>?) = state.withLock { state in
            switch state {
            case .answered: return (false, nil)
            case .fresh:
                state = .answered(answer)
                return (true, nil)
            case .waiting(let continuation):
                state = .answered(answer)
                return (true, continuation)
            }
        }
        continuation?.resume(returning: answer)
        return isFirst
    }

    /// Returns the answer; call once. Cancellation answers with `ifCancelled`.
    package func wait(ifCancelled: Answer) async -> Answer {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let early: Answer? = state.withLock { state in
                    if case .answered(let answer) = state { return answer }
                    // If the task was cancelled earlier, the handler below has already answered; otherwise it runs after this.
                    state = .waiting(continuation)
                    return nil
                }
                if let early { continuation.resume(returning: early) }
            }
        } onCancel: {
            answer(ifCancelled)
        }
    }
}
