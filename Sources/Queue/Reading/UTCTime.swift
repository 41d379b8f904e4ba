internal import Glibc

/// A moment as RFC 3339 in UTC, to the second: `2026-08-05T12:41:07Z`.
package enum UTCTime {
    /// * `milliseconds`: since 1970, as Redis has them.
    package static func text(milliseconds: Int) -> String {
        text(seconds: milliseconds >= 0 ? milliseconds / 1000 : (milliseconds - 999) / 1000)
    }

    /// * `seconds`: since 1970; `-` for what no calendar has.
    package static func text(seconds: Int) -> String {
        var seconds = time_t(seconds)
        var parts = tm()
        guard gmtime_r(&seconds, &parts) != nil else { return "-" }
        let date = [Int(parts.tm_year) + 1900, Int(parts.tm_mon) + 1, Int(parts.tm_mday)].map(padded)
        let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { padded(Int($0)) }
        return date.joined(separator: "-") + "T" + clock.joined(separator: ":") + "Z"
    }

    /// 12:41:07 in local time.
    /// * `seconds`: since 1970; nil: now.
    package static func clock(seconds: Int? = nil) -> String {
        var seconds = seconds.map { time_t($0) } ?? time(nil)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return [parts.tm_hour, parts.tm_min, parts.tm_sec].map { padded(Int($0)) }.joined(separator: ":")
    }

    /// 07
    package static func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
