/// The instants at which requests to one host may begin. A sender reserves the next ones. An instant that passes unused is lost: a request
/// made up for later would exceed the rate of that second.
package struct RateSchedule: Sendable, Equatable {
    /// The first unreserved instant, in seconds of the caller's clock.
    package var next = -Double.infinity

    package init() {}

    /// Seconds between two requests: 2.5 % more than the rate requires, to allow for late starts.
    package static func interval(_ rate: Double) -> Double { 1 / (rate * 0.975) }

    /// The maximum lateness of a request. At most `(1 + lateness) / interval` requests begin in any second: the rate plus one.
    package static func lateness(_ rate: Double) -> Double { max(interval(rate), 0.025) }

    /// Reservation size: a quarter of a second's requests, so that little is lost when a process dies.
    package static func share(_ rate: Double) -> Int { max(1, Int((rate / 4).rounded(.up))) }

    /// How far ahead instants are reserved; reservations of dead processes block at most this long.
    package static func horizon(_ rate: Double) -> Double { max(1, 4 * interval(rate)) }

    /// Reserves up to `count` instants within the horizon; nil if there are none.
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

package struct HostSlotRequest: Sendable, Equatable {
    /// As counted by ``HostPolicy``.
    package var host: String
    package var count: Int
    /// Requests per second.
    package var rate: Double

    package init(host: String, count: Int, rate: Double) {
        self.host = host
        self.count = count
        self.rate = rate
    }
}
