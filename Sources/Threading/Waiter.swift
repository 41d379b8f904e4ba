/// One task that waits until somebody answers it or it is cancelled. The first answer counts, whichever of answer, wait and cancellation
/// comes first: who queues tasks keeps waiters, and passes over those that do not take its answer.
package final class Waiter<Answer: Sendable>: Sendable {
    private enum State {
        case fresh
        case waiting(UnsafeContinuation<Answer, Never>)
        case answered(Answer)
    }

    private let state = Locked(State.fresh)

    package init() {}

    /// Whether it waits no longer.
    package var isAnswered: Bool {
        state.withLock { if case .answered = $0 { true } else { false } }
    }

    /// Ends the wait.
    /// - Returns: false where it had an answer before.
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

    /// Returns the answer; once. A cancelled task answers itself.
    package func wait(ifCancelled: Answer) async -> Answer {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let early: Answer? = state.withLock { state in
                    if case .answered(let answer) = state { return answer }
                    // Cancelled before it was here: the handler below has run already and has answered, or runs after this.
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
