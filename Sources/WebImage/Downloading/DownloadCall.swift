internal import Threading

/// One caller of `download`, known by its identity. Its result comes through the lock, which ThreadSanitizer understands: of a
/// continuation that is resumed before its task has suspended it does not see that the one comes before the other.
final class DownloadCall: Sendable {
    private struct State {
        var isCancelled = false
        var continuation: UnsafeContinuation<Void, Never>?
        var result: Result<DownloadedImage, WebImageError> = .failure(.downloadCancelled)
    }

    private let state = Locked(State())
    /// Its leave to begin anything; nil where nobody takes that back.
    let permit: DownloadPermit?
    /// Hears of its bytes.
    let progress: (@Sendable (Int, Int) -> Void)?

    init(permit: DownloadPermit? = nil, progress: (@Sendable (Int, Int) -> Void)? = nil) {
        self.permit = permit
        self.progress = progress
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }
    /// How it ended; for its caller, once.
    func takeResult() -> Result<DownloadedImage, WebImageError> {
        state.withLock { state in
            var result: Result<DownloadedImage, WebImageError> = .failure(.downloadCancelled)
            swap(&result, &state.result)
            return result
        }
    }

    func cancel() { state.withLock { $0.isCancelled = true } }
    func begin(_ continuation: UnsafeContinuation<Void, Never>) { state.withLock { $0.continuation = continuation } }

    /// Wakes the caller; once.
    func end(_ result: Result<DownloadedImage, WebImageError>) {
        let continuation = state.withLock { state in
            state.result = result
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume()
    }
}
