internal import DequeModule

struct HostSlots {
    private var reserved: Deque<HostReservation> = []
    var isRequesting = false
    /// Earliest time of the next request.
    var nextRequestTime = -Double.infinity

    private(set) var count = 0

    var next: Double? { reserved.first?.first }

    mutating func add(_ reservation: HostReservation) {
        reserved.append(reservation)
        count += reservation.count
    }

    /// Drops instants that were missed.
    mutating func dropLate(now: Double, lateness: Double) {
        while let next, next + lateness < now { removeFirst() }
    }

    /// Consumes an instant that has come; otherwise returns the next one. Expired instants are dropped.
    mutating func take(now: Double, lateness: Double) -> (isTaken: Bool, next: Double?) {
        dropLate(now: now, lateness: lateness)
        guard let next, next <= now else { return (false, next) }
        removeFirst()
        return (true, nil)
    }

    private mutating func removeFirst() {
        reserved[0].first += reserved[0].interval
        reserved[0].count -= 1
        count -= 1
        if reserved[0].count == 0 { reserved.removeFirst() }
    }
}
