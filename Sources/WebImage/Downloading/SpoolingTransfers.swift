/// Transfers that stand still because the files of their bodies are not written as fast as bytes come. Only the downloader's thread uses it.
final class SpoolingTransfers {
    private var paused: [CurlHandle] = []
    /// Has the thread look again; callable from any.
    private let wake: @Sendable () -> Void

    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    /// Whether a transfer has to stand still until ``goOn()``.
    func holds(_ handle: CurlHandle) -> Bool {
        guard let body = handle.response.body, body.isFull(wake) else { return false }
        paused.append(handle)
        return true
    }

    /// Lets those go on for which there is room.
    func goOn() {
        guard !paused.isEmpty else { return }
        let handles = paused
        paused = []
        for handle in handles where handle.isPaused {
            if handle.response.body?.isFull(wake) == true { paused.append(handle) } else { handle.goOn() }
        }
    }
}
