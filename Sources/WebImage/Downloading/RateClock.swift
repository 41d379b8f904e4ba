/// The instants of one rate at which requests to a host may begin, for all of its URLs that have this limit. Used only on the downloader's
/// thread; the caller passes the time.
final class RateClock {
    let rate: Double
    private var slots = HostSlots()
    /// Where instants come from if they are not reserved centrally.
    private var schedule = RateSchedule()
    /// How many are to be requested centrally.
    private(set) var wanted = 0
    private let isShared: Bool

    init(_ rate: Double, isShared: Bool) { (self.rate, self.isShared) = (rate, isShared) }

    /// Whether no instant is reserved.
    var isEmpty: Bool { slots.count == 0 }

    /// Whether it can be forgotten.
    func isUnused(now: Double) -> Bool { isEmpty && !slots.isRequesting && schedule.next <= now }

    /// How many instants are reserved at once.
    var share: Int { RateSchedule.share(rate) }

    /// Whether an instant has come; if not, the next ones are reserved.
    /// * `count`: how many at once.
    /// * `waiting`: operations that need one.
    /// - Returns: nil if one has come; otherwise when to look again, infinity: with the reply to a request. `isNew`: it has to be sent.
    func wait(
        reserving count: Int, waiting: Int, now: Double
    ) -> (until: Double?, isNew: Bool) {
        slots.dropLate(now: now, lateness: RateSchedule.lateness(rate))
        if isDue(now) { return (nil, false) }
        let isNew = reserve(count, waiting: waiting, now: now)
        if isDue(now) { return (nil, false) }
        return (slots.next ?? (slots.isRequesting ? .infinity : slots.nextRequestTime), isNew)
    }

    private func isDue(_ now: Double) -> Bool { slots.next.map { $0 <= now } ?? false }

    /// Consumes the instant that has come.
    func take(now: Double) { _ = slots.take(now: now, lateness: RateSchedule.lateness(rate)) }

    /// Reserves the next instants if operations wait for them and few are left.
    /// - Returns: whether a request has to be sent.
    func reserve(_ count: Int, waiting: Int, now: Double) -> Bool {
        guard slots.count <= count / 2, waiting > slots.count, !slots.isRequesting else { return false }
        guard isShared else {
            if let own = schedule.reserve(count, rate: rate, now: now) { slots.add(own) }
            return false
        }
        guard now >= slots.nextRequestTime else { return false }
        (slots.isRequesting, wanted) = (true, count)
        return true
    }

    /// Nothing waits for the request any more: it is not sent.
    func dropRequest() { slots.isRequesting = false }

    /// Handles the reply; nil: all instants up to the horizon are taken. The random delay keeps processes from retrying in step.
    /// * `random`: from 0 to 1.
    func grant(_ reservation: HostReservation?, now: Double, random: Double) {
        slots.isRequesting = false
        if let reservation {
            slots.add(reservation)
        } else {
            slots.nextRequestTime = now + (0.25 + 0.5 * random) * RateSchedule.horizon(rate) / 2
        }
    }
}
