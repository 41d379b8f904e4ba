internal import Threading

/// One caller of `download`, identified by reference. Its result is passed through the lock, which ThreadSanitizer understands: it does not
/// see the ordering of a continuation that is resumed before its task has suspended.
final class DownloadCaller: Sendable {
    private struct State {
        var isCancelled = false
        var continuation: UnsafeContinuation<Void, Never>?
        var result: Result<DownloadedImage, WebImageError> = .failure(.downloadCancelled)
    }

    private let state = Locked(State())
    /// Permission to start requests; nil if it cannot be revoked.
    let permit: DownloadPermit?
    let progress: (@Sendable (Int, Int) -> Void)?
    /// Where its body is counted until the caller has checked it; nil: nowhere.
    let unchecked: UncheckedBodies?

    init(
        permit: DownloadPermit? = nil, progress: (@Sendable (Int, Int) -> Void)? = nil,
        unchecked: UncheckedBodies? = nil
    ) {
        self.permit = permit
        self.progress = progress
        self.unchecked = unchecked
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }
    /// Returns the result to the caller; once.
    func takeResult() -> Result<DownloadedImage, WebImageError> {
        state.withLock { state in
            var result: Result<DownloadedImage, WebImageError> = .failure(.downloadCancelled)
            swap(&result, &state.result)
            return result
        }
    }

    func cancel() { state.withLock { $0.isCancelled = true } }
    func begin(_ continuation: UnsafeContinuation<Void, Never>) { state.withLock { $0.continuation = continuation } }

    /// Sets the result, which the caller finds when it is resumed; once.
    func take(_ result: Result<DownloadedImage, WebImageError>) {
        if let unchecked, case .success(let image) = result, UncheckedBodies.counts(image) { unchecked.add() }
        state.withLock { $0.result = result }
    }

    /// Wakes the caller; once.
    func resume() {
        let continuation = state.withLock { state in
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume()
    }

    /// Sets the result and wakes the caller; once.
    func end(_ result: Result<DownloadedImage, WebImageError>) {
        take(result)
        resume()
    }
}
