internal import CCurl
internal import Threading

/// Limits the body bytes per second of a downloader's transfers, optionally shared with other processes. Used only on the downloader's
/// thread.
final class BandwidthLimit {
    /// Bytes per second of this downloader; infinity if only the shared limit applies.
    private let rate: Double
    /// Bytes available now; negative if too many have been received.
    private var level: Double
    private var filledAt: Double
    private var paused: [CurlHandle] = []
    private(set) var lease: BandwidthLease?

    init(bytesPerSecond: Int?, shared: BandwidthLease? = nil) {
        rate = bytesPerSecond.map(Double.init) ?? .infinity
        level = rate / 20
        filledAt = MonotonicClock.now
        lease = shared
    }

    /// Accounts for received bytes; false if none are available: the handle's transfer then pauses until ``goOn()``.
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

    /// Whether transfers wait for bytes now.
    var isHolding: Bool { !paused.isEmpty }

    private var hasRoom: Bool { level > 0 && lease.map { $0.level > 0 } ?? true }

    private func fill() {
        let now = MonotonicClock.now
        lease?.fill(now: now)
        // At most a twentieth of a second accumulates.
        if rate < .infinity { level = min(rate / 20, level + (now - filledAt) * rate) }
        filledAt = now
    }

    var nextTime: Double {
        guard !paused.isEmpty else { return .infinity }
        let own = level > 0 ? filledAt : filledAt + max(0.001, -level / rate)
        guard let lease, lease.level <= 0 else { return own }
        return max(own, lease.nextTime(now: filledAt))
    }

    func goOn() {
        guard !paused.isEmpty else { return }
        fill()
        guard hasRoom else {
            if let lease, lease.level <= 0 { self.lease?.want() }
            return
        }
        let handles = paused
        paused = []
        // Each delivers its held-back bytes again and pauses again if none are available.
        for handle in handles where handle.isPaused { handle.goOn() }
    }

    func takeRequest() -> HostSlotRequest? { wantsMore ? lease?.takeRequest() : nil }

    var wantsMore: Bool { lease?.isRequesting(now: MonotonicClock.now) ?? false }

    func grant(_ reservation: HostReservation?) {
        lease?.grant(reservation, now: MonotonicClock.now, random: .random(in: 0...1))
    }
}
