internal import CCurl
internal import Threading

/// So many bytes of bodies a second, for all transfers of a downloader together, or also for those of other processes. Only the
/// downloader's thread uses it.
final class BandwidthLimit {
    /// Bytes a second of this downloader alone; infinity: only others' limit counts.
    private let rate: Double
    /// Bytes that may come now; below 0 what came too early has to be waited out.
    private var level: Double
    private var filledAt: Double
    private var paused: [CurlHandle] = []
    /// What it has together with others; nil: nothing.
    private(set) var lease: BandwidthLease?

    init(bytesPerSecond: Int?, shared: BandwidthLease? = nil) {
        rate = bytesPerSecond.map(Double.init) ?? .infinity
        level = rate / 20
        filledAt = MonotonicClock.now
        lease = shared
    }

    /// Takes bytes that came; false: not now, and the handle's transfer stands still until ``goOn()``.
    func take(_ count: Int, on handle: CurlHandle) -> Bool {
        fill()
        guard hasRoom else {
            paused.append(handle)
            lease?.want()
            return false
        }
        level -= Double(count)
        lease?.take(count)
        return true
    }

    private var hasRoom: Bool { level > 0 && lease.map { $0.level > 0 } ?? true }

    private func fill() {
        let now = MonotonicClock.now
        lease?.fill(now: now)
        // A twentieth of a second is saved up at most.
        if rate < .infinity { level = min(rate / 20, level + (now - filledAt) * rate) }
        filledAt = now
    }

    /// When somebody may go on; infinity: nobody waits.
    var nextTime: Double {
        guard !paused.isEmpty else { return .infinity }
        let own = level > 0 ? filledAt : filledAt + max(0.001, -level / rate)
        guard let lease, lease.level <= 0 else { return own }
        return max(own, lease.nextTime(now: filledAt))
    }

    /// Lets those go on that stood still, while there is room.
    func goOn() {
        guard !paused.isEmpty else { return }
        fill()
        guard hasRoom else {
            if let lease, lease.level <= 0 { self.lease?.want() }
            return
        }
        let handles = paused
        paused = []
        // Each calls back with what it had; one for which there is no room stands still again.
        for handle in handles where handle.isPaused { handle.goOn() }
    }

    /// What to reserve among all processes now; nil where nothing is.
    func takeWish() -> HostWish? { wantsMore ? lease?.takeWish() : nil }

    /// Whether something is to be reserved now.
    var wantsMore: Bool { lease?.isAsking(now: MonotonicClock.now) ?? false }

    /// The answer to a wish; nil where there is nothing now.
    func grant(_ reservation: HostReservation?) {
        lease?.grant(reservation, now: MonotonicClock.now, random: .random(in: 0...1))
    }
}
