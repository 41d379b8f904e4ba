/// A time as people write it: `15`, `15s`, `250ms`, `2m`, `24h`, `7d`, `1w`. Without a unit it means seconds.
package struct TimeSpan: Sendable, CustomStringConvertible {
    /// A century, in seconds: longer times mean none, and do not fit into nanoseconds.
    private static let longest = 3_153_600_000.0
    /// Its length.
    package var seconds: Double

    package init(seconds: Double) { self.seconds = seconds }

    package init?(argument: String) {
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

    /// Reads back as the same time.
    package var description: String {
        guard seconds == seconds.rounded(), abs(seconds) < 1e15 else { return "\(seconds)s" }
        let whole = Int(seconds)
        if whole == 0 { return "0s" }
        for (unit, length) in [("d", 86_400), ("h", 3600), ("m", 60)] where whole % length == 0 {
            return "\(whole / length)\(unit)"
        }
        return "\(whole)s"
    }
}

/// How old something may become: `12h`, `7d`, `2w`. A number needs its unit, because people mean days where a time without one is seconds; 0 needs
/// none.
package struct Age: Sendable, CustomStringConvertible {
    private let span: TimeSpan

    /// Its length.
    package var seconds: Double { span.seconds }

    package init(seconds: Double) { span = TimeSpan(seconds: seconds) }

    package init?(argument: String) {
        guard let span = TimeSpan(argument: argument),
            span.seconds == 0 || argument.utf8.last.map({ $0 > 0x39 }) == true
        else { return nil }
        self.span = span
    }

    package var description: String { "\(span)" }
}

/// A size as people write it: `1000000`, `64M`, `64m`, `64MiB` (powers of 1,024), `2.5MB` (powers of 1,000).
package struct ByteSize: Sendable, CustomStringConvertible {
    /// Bytes.
    package var bytes: Int

    package init(bytes: Int) { self.bytes = bytes }

    package init?(argument: String) {
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

    /// Reads back as the same size.
    package var description: String {
        for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)]
        where bytes >= 1 << shift && bytes % (1 << shift) == 0 {
            return "\(bytes >> shift)\(unit)"
        }
        return "\(bytes)"
    }
}

/// A number of pixels: `1000000`, `1M`, `25MP`, `300k`, all in powers of 1,000.
package struct PixelCount: Sendable, CustomStringConvertible {
    package var count: Int

    package init(count: Int) { self.count = count }

    package init?(argument: String) {
        var text = argument.lowercased()[...]
        var factor = 1.0
        for (unit, value) in [("mp", 1e6), ("m", 1e6), ("k", 1e3), ("g", 1e9)] where text.hasSuffix(unit) {
            text = text.dropLast(unit.count)
            factor = value
            break
        }
        guard let number = Double(text), number.isFinite, number >= 0, number * factor < 1e15 else { return nil }
        count = Int(number * factor)
    }

    package var description: String {
        count > 0 && count % 1_000_000 == 0 ? "\(count / 1_000_000)M" : String(count)
    }
}
