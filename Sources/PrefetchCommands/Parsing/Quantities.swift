internal import ArgumentParser

/// A time on the command line: `15`, `15s`, `250ms`, `2m`, `24h`, `7d`, `1w`. Without a unit it means seconds.
package struct TimeSpan: ExpressibleByArgument, Sendable {
    /// A century, in seconds: longer times mean none, and do not fit into nanoseconds.
    private static let longest = 3_153_600_000.0
    /// Its length.
    package var seconds: Double

    init(seconds: Double) { self.seconds = seconds }

    init?(argument: String) {
        let units: [(String, Double)] = [
            ("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("d", 86_400), ("w", 604_800),
        ]
        var text = argument[...]
        var factor = 1.0
        for (unit, value) in units where text.hasSuffix(unit) {
            text = text.dropLast(unit.count)
            factor = value
            break
        }
        guard let number = Double(text), number.isFinite, number >= 0, number * factor <= Self.longest else {
            return nil
        }
        seconds = number * factor
    }

    var defaultValueDescription: String {
        let whole = Int(seconds)
        if seconds < 1 { return "\(Int(seconds * 1000))ms" }
        if whole % 86_400 == 0 { return "\(whole / 86_400)d" }
        return whole % 3600 == 0 ? "\(whole / 3600)h" : "\(whole)s"
    }
}

/// How old something may become, on the command line: `12h`, `7d`, `2w`. A number needs its unit, because people mean days where a time
/// without one is seconds; 0 needs none.
package struct Age: ExpressibleByArgument, Sendable {
    private let span: TimeSpan

    /// Its length.
    package var seconds: Double { span.seconds }

    init(seconds: Double) { span = TimeSpan(seconds: seconds) }

    init?(argument: String) {
        guard let span = TimeSpan(argument: argument),
            span.seconds == 0 || argument.utf8.last.map({ $0 > 0x39 }) == true
        else { return nil }
        self.span = span
    }

    var defaultValueDescription: String { span.defaultValueDescription }
}

/// A size on the command line: `1000000`, `64M`, `64m`, `64MiB` (powers of 1,024), `2.5MB` (powers of 1,000).
struct ByteSize: ExpressibleByArgument, Sendable {
    /// Bytes.
    var bytes: Int

    init(bytes: Int) { self.bytes = bytes }

    init?(argument: String) {
        // Case does not matter: curl and wget take 1m and 1M.
        let units: [(String, Int)] = [
            ("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30), ("tib", 1 << 40), ("kb", 1000), ("mb", 1_000_000),
            ("gb", 1_000_000_000), ("tb", 1_000_000_000_000), ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30),
            ("t", 1 << 40), ("b", 1),
        ]
        let text = argument.lowercased()
        let (unit, factor) = units.first { text.hasSuffix($0.0) } ?? ("", 1)
        let digits = text.dropLast(unit.count)
        if let number = Int(digits) {
            let (product, overflow) = number.multipliedReportingOverflow(by: factor)
            guard number > 0, !overflow else { return nil }
            bytes = product
            return
        }
        // Not 1e3, inf or a fraction of a byte.
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2E }), factor > 1,
            let number = Double(digits),
            let product = Int(exactly: (number * Double(factor)).rounded()), product > 0
        else { return nil }
        bytes = product
    }

    var defaultValueDescription: String { "\(bytes >> 20)MiB" }
}

/// How many failed URLs still count as success: `--allow-failures 10` or `--allow-failures 1%`.
struct AllowedSkips: ExpressibleByArgument, Sendable {
    private var number: Double
    private var isShare: Bool

    init?(argument: String) {
        isShare = argument.hasSuffix("%")
        guard let value = Double(isShare ? String(argument.dropLast()) : argument), value >= 0, value.isFinite,
            isShare ? value <= 100 : value == value.rounded()
        else { return nil }
        number = value
    }

    /// Whether so many of so many are within it.
    func allows(_ failed: Int, of total: Int) -> Bool {
        isShare ? Double(failed) * 100 <= number * Double(total) : Double(failed) <= number
    }
}
