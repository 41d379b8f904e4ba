/// What sizes and times of files and records may be. What is read from a disk goes through here before anything is added or compared.
package enum Plausible {
    /// The longest image there may be, in bytes: 4 GiB.
    static let largestImage = 4 << 30
    /// Seconds since 1970 up to the end of the year 9999.
    static let times = 0...253_402_300_799

    /// A time of a file system or a record, in seconds since 1970; the nearest that is one.
    static func time(_ seconds: Int) -> Int { min(max(seconds, times.lowerBound), times.upperBound) }

    /// The sum of two sizes, or the largest number there is.
    package static func sum(_ one: Int, _ other: Int) -> Int {
        let (sum, isOver) = one.addingReportingOverflow(other)
        return isOver ? .max : sum
    }
}
