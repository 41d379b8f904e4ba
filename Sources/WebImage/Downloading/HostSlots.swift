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

    /// Consumes an instant that has come; otherwise returns the next one. Expired instants are dropped.
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
