/// The instants at which requests to one host may begin. Whoever wants to send some reserves the next ones; one that passes unused is
/// lost, since a request made good later would be one too many for that second.
package struct RateSchedule: Sendable, Equatable {
    /// The first instant that nobody has reserved, in seconds by whichever clock.
    package var next = -Double.infinity

    package init() {}

    /// Seconds between two requests: 2.5 % more than the rate says, for those that begin late.
    package static func interval(_ rate: Double) -> Double { 1 / (rate * 0.975) }

    /// How late a request may begin. Within any second there are `(1 + lateness) / interval` of them: at most the rate and one.
    package static func lateness(_ rate: Double) -> Double { max(interval(rate), 0.025) }

    /// How many are reserved at once: a quarter of a second's, so that little is lost with a process that dies.
    package static func share(_ rate: Double) -> Int { max(1, Int((rate / 4).rounded(.up))) }

    /// How far ahead instants are reserved: all that die with their processes.
    package static func horizon(_ rate: Double) -> Double { max(1, 4 * interval(rate)) }

    /// Reserves up to `count` instants, not beyond the horizon; nil where there is none.
    package mutating func reserve(_ count: Int, rate: Double, now: Double) -> HostReservation? {
        let interval = Self.interval(rate)
        let first = max(next, now)
        let room = Int(((now + Self.horizon(rate) - first) / interval).rounded(.up))
        let granted = min(count, room)
        guard granted > 0 else { return nil }
        next = first + Double(granted) * interval
        return HostReservation(first: first, interval: interval, count: granted)
    }
}

/// Instants at which requests to a host may begin: the first, and so many in all at even distances.
package struct HostReservation: Sendable, Equatable {
    package var first: Double
    package var interval: Double
    package var count: Int

    package init(first: Double, interval: Double, count: Int) {
        self.first = first
        self.interval = interval
        self.count = count
    }
}

/// How many instants a downloader wants of a host.
package struct HostWish: Sendable, Equatable {
    /// As ``HostPolicy`` counts hosts.
    package var host: String
    package var count: Int
    /// Requests a second.
    package var rate: Double

    package init(host: String, count: Int, rate: Double) {
        self.host = host
        self.count = count
        self.rate = rate
    }
}
