/// The part of one downloader in so many bytes a second that several processes have together.
///
/// What comes is divided into pieces, each with an instant of its own, which a downloader reserves as requests to a host with a rate
/// are reserved. A piece whose instant passes while nobody wants bytes is lost, so nothing is saved up, and whoever dies takes no more
/// with it than it had reserved.
struct BandwidthLease {
    /// Its name where instants are reserved; no host is called so.
    static let name = "#bytes"
    /// Pieces a second.
    static let pieces = 20.0

    /// Bytes that may come now; below 0 what came too early has to be waited out.
    private(set) var level = 0.0
    private let piece: Double
    private var slots = HostSlots()
    private var isWanted = false

    init(bytesPerSecond: Int) { piece = Double(bytesPerSecond) / Self.pieces }

    /// Takes bytes that came.
    mutating func take(_ count: Int) {
        level -= Double(count)
        if level <= 0 { isWanted = true }
    }

    /// Somebody stands still for want of them.
    mutating func want() { isWanted = true }

    /// Adds the pieces whose instants have come, as far as they are wanted.
    mutating func fill(now: Double) {
        while level <= 0, slots.take(now: now, lateness: RateSchedule.lateness(Self.pieces)).isTaken { level += piece }
    }

    /// When there may be more, or may be asked for again; infinity: when an answer comes.
    func nextTime(now: Double) -> Double {
        slots.next ?? (slots.isAsking || slots.askAfter <= now ? .infinity : slots.askAfter)
    }

    /// Whether more is to be reserved now.
    func isAsking(now: Double) -> Bool {
        isWanted && !slots.isAsking && now >= slots.askAfter && slots.count <= RateSchedule.share(Self.pieces) / 2
    }

    /// What to reserve; it is on its way from here on.
    mutating func takeWish() -> HostWish {
        (slots.isAsking, isWanted) = (true, false)
        return HostWish(host: Self.name, count: RateSchedule.share(Self.pieces), rate: Self.pieces)
    }

    /// The answer; nil where there are none now. Not all who are told so come back together.
    /// * `random`: from 0 to 1.
    mutating func grant(_ reservation: HostReservation?, now: Double, random: Double) {
        slots.isAsking = false
        if let reservation {
            slots.add(reservation)
        } else {
            slots.askAfter = now + (0.25 + 0.5 * random) * RateSchedule.horizon(Self.pieces) / 2
        }
    }
}
