internal import Prefetch

/// Numbers, sizes and times as people read them.
package enum Wording {
    /// 4,812
    package static func count(_ number: Int) -> String {
        var digits = String(abs(number))
        var groups: [String] = []
        while digits.count > 3 {
            groups.insert(String(digits.suffix(3)), at: 0)
            digits.removeLast(3)
        }
        groups.insert(digits, at: 0)
        return (number < 0 ? "-" : "") + groups.joined(separator: ",")
    }

    /// 161 MB: powers of ten, three digits.
    static func bytes(_ number: Int) -> String {
        var value = Double(number)
        for unit in ["B", "kB", "MB", "GB", "TB"] {
            if value < 999.5 || unit == "TB" {
                return unit == "B" ? "\(number) B" : "\(decimal(value, digits: value < 9.95 ? 1 : 0)) \(unit)"
            }
            value /= 1000
        }
        return "\(number) B"
    }

    /// 9.8 s, 1m12s, 2h05m
    package static func seconds(_ value: Double) -> String {
        if value < 59.95 { return "\(decimal(value, digits: 1)) s" }
        let whole = Int(clamped: value.rounded())
        if whole < 3600 { return "\(whole / 60)m\(UTCTime.padded(whole % 60))s" }
        return "\(whole / 3600)h\(UTCTime.padded(whole / 60 % 60))m"
    }

    /// A number with so many decimals.
    static func decimal(_ value: Double, digits: Int) -> String {
        let scale = digits == 0 ? 1 : digits == 1 ? 10 : 100
        let scaled = Int(clamped: (value * Double(scale)).rounded())
        if digits == 0 { return String(scaled) }
        let rest = String(abs(scaled % scale))
        return "\(scaled / scale)." + String(repeating: "0", count: digits - rest.count) + rest
    }

    /// 12.5%, and never 100.0% before the end.
    static func share(_ part: Int, of whole: Int) -> String {
        guard whole > 0 else { return "100.0%" }
        let tenths = part == whole ? 1000 : min(999, part * 1000 / whole)
        return "\(tenths / 10).\(tenths % 10)%"
    }
}

extension Int {
    /// The nearest number to one with a fraction, which may be too large for one without or be none: a time that is left by a rate near 0.
    init(clamped value: Double) {
        // 2^62: what is shown is still counted on.
        let most = 4_611_686_018_427_387_904.0
        self = value.isNaN ? 0 : Int(Swift.min(Swift.max(value, -most), most))
    }
}

// MARK: - Nouns

extension Wording {
    /// 1 URL, 4,812 URLs.
    ///
    /// * `plural`: where another s does not make it.
    static func count(_ number: Int, _ noun: String, _ plural: String? = nil) -> String {
        "\(count(number)) \(number == 1 ? noun : plural ?? noun + "s")"
    }
}
