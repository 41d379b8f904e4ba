/// Bounds of sizes and times in files and records. Values read from disk are clamped here before any arithmetic.
package enum Plausible {
    package static let largestImage = 4 << 30
    /// Seconds since 1970, until the end of the year 9999.
    static let times = 0...253_402_300_799

    static func time(_ seconds: Int) -> Int { min(max(seconds, times.lowerBound), times.upperBound) }

    package static func sum(_ one: Int, _ other: Int) -> Int {
        let (sum, isOver) = one.addingReportingOverflow(other)
        return isOver ? .max : sum
    }
}
