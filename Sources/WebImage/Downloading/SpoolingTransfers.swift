/// Transfers paused because their body files are written more slowly than bytes arrive. Used only on the downloader's thread.
final class SpoolingTransfers {
    private var paused: [CurlHandle] = []
    /// Wakes the downloader's thread, from any thread.
    private let wake: @Sendable () -> Void

    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    /// Whether a transfer has to pause until ``goOn()``.
    func holds(_ handle: CurlHandle) -> Bool {
        guard let body = handle.response.body, body.isFull(wake) else { return false }
        paused.append(handle)
        return true
    }

    /// Whether transfers wait for their files now.
    var isHolding: Bool { !paused.isEmpty }

    func goOn() {
        guard !paused.isEmpty else { return }
        let handles = paused
        paused = []
        for handle in handles where handle.isPaused {
            if handle.response.body?.isFull(wake) == true { paused.append(handle) } else { handle.goOn() }
        }
    }
}
