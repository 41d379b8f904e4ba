internal import DequeModule

/// The instants a downloader has reserved of one host.
struct HostSlots {
    private var reserved: Deque<HostReservation> = []
    /// Whether more were asked for, and no answer has come yet.
    var isAsking = false
    /// Before that there is no use in asking again.
    var askAfter = -Double.infinity

    /// How many there are.
    private(set) var count = 0

    /// The first one; nil where there is none.
    var next: Double? { reserved.first?.first }

    mutating func add(_ reservation: HostReservation) {
        reserved.append(reservation)
        count += reservation.count
    }

    /// Takes an instant that has come; the next one where none has. Those that passed unused are gone.
    mutating func take(now: Double, lateness: Double) -> (isTaken: Bool, next: Double?) {
        while var first = reserved.first {
            let isLate = first.first + lateness < now
            guard isLate || first.first <= now else { return (false, first.first) }
            first.first += first.interval
            first.count -= 1
            count -= 1
            if first.count == 0 { reserved.removeFirst() } else { reserved[0] = first }
            if !isLate { return (true, nil) }
        }
        return (false, nil)
    }
}
