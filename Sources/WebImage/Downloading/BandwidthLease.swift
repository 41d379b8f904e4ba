/// One downloader's part of a bandwidth limit shared by several processes. The bandwidth is divided into pieces, each with its own instant,
/// reserved like the instants of a host's request rate. Unused pieces expire, so nothing accumulates, and a process that dies loses only
/// its reservations.
struct BandwidthLease {
    /// Host name used for reserving instants; no real host has it.
    static let name = "#bytes"
    /// Pieces per second.
    static let pieces = 20.0

    /// Bytes available now; negative if too many have been received.
    private(set) var level = 0.0
    private let piece: Double
    private var slots = HostSlots()
    private var isWanted = false

    init(bytesPerSecond: Int) { piece = Double(bytesPerSecond) / Self.pieces }

    mutating func take(_ count: Int) {
        level -= Double(count)
        if level <= 0 { isWanted = true }
    }

    /// Requests more: a transfer is paused for lack of bytes.
    mutating func want() { isWanted = true }

    /// Adds the pieces whose instants have come, if they are wanted.
    mutating func fill(now: Double) {
        while level <= 0, slots.take(now: now, lateness: RateSchedule.lateness(Self.pieces)).isTaken { level += piece }
    }

    /// Next time at which bytes may be available or may be requested; infinity while a reply is pending.
    func nextTime(now: Double) -> Double {
        slots.next ?? (slots.isRequesting || slots.nextRequestTime <= now ? .infinity : slots.nextRequestTime)
    }

    func isRequesting(now: Double) -> Bool {
        isWanted && !slots.isRequesting && now >= slots.nextRequestTime
            && slots.count <= RateSchedule.share(Self.pieces) / 2
    }

    /// Returns the reservation to request and marks it as pending.
    mutating func takeRequest() -> HostSlotRequest {
        (slots.isRequesting, isWanted) = (true, false)
        return HostSlotRequest(host: Self.name, count: RateSchedule.share(Self.pieces), rate: Self.pieces)
    }

    /// Handles the reply; nil if nothing is available now. The randomised delay keeps processes from retrying in step.
    /// * `random`: from 0 to 1.
    mutating func grant(_ reservation: HostReservation?, now: Double, random: Double) {
        slots.isRequesting = false
        if let reservation {
            slots.add(reservation)
        } else {
            slots.nextRequestTime = now + (0.25 + 0.5 * random) * RateSchedule.horizon(Self.pieces) / 2
        }
    }
}
