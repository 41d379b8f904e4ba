internal import CCurl
internal import Glibc

/// So many bytes of bodies a second, for all transfers of a downloader together. Only the downloader's thread uses it.
final class BandwidthLimit {
    private let rate: Double
    /// Bytes that may come now; below 0 what came too early has to be waited out.
    private var level: Double
    private var filledAt: Double
    private var paused: [CurlHandle] = []

    init(bytesPerSecond: Int) {
        rate = Double(bytesPerSecond)
        level = rate / 20
        filledAt = monotonicSeconds()
    }

    /// Takes bytes that came; false: not now, and the handle's transfer stands still until ``goOn()``.
    func take(_ count: Int, on handle: CurlHandle) -> Bool {
        fill()
        guard level > 0 else {
            paused.append(handle)
            return false
        }
        level -= Double(count)
        return true
    }

    private func fill() {
        let now = monotonicSeconds()
        // A twentieth of a second is saved up at most.
        level = min(rate / 20, level + (now - filledAt) * rate)
        filledAt = now
    }

    /// When somebody may go on; infinity: nobody waits.
    var nextTime: Double { paused.isEmpty ? .infinity : filledAt + max(0.001, -level / rate) }

    /// Lets those go on that stood still, while there is room.
    func goOn() {
        guard !paused.isEmpty else { return }
        fill()
        guard level > 0 else { return }
        let handles = paused
        paused = []
        // Each calls back with what it had; one for which there is no room stands still again.
        for handle in handles where handle.isPaused { handle.goOn() }
    }
}
