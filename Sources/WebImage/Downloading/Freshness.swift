internal import CCurl

/// Freshness of a response (RFC 9111, section 4.2; RFC 8246 for `immutable`) in a private cache: `s-maxage` is for shared ones.
enum Freshness {
    /// Lifetime for `immutable` without an explicit one.
    static let year = 31_536_000

    /// Remaining lifetime in seconds, 0 if it has to be revalidated each time; nil if unspecified.
    /// * `control`: every `Cache-Control` line.
    /// * `now`: seconds since 1970, used without a `Date`.
    static func seconds(control: [String], expires: String?, date: String?, age: String?, now: Int) -> Int? {
        let directives = control.flatMap { $0.split(atByte: ",") }.map { directive in
            Substring(directive.utf8.drop(while: isBlank).prefix { !isBlank($0) }).asciiLowercased
        }
        // `no-cache="field"` concerns only that field.
        if directives.contains("no-store") || directives.contains("no-cache") { return 0 }
        let spent = max(0, age.flatMap { Int($0) } ?? 0)
        if let value = directives.first(where: { $0.startsWithBytes(of: "max-age=") })?.utf8.dropFirst(8) {
            // Invalid values mean stale (section 4.2.1).
            let digits = value.filter { $0 != UInt8(ascii: "\"") }
            guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return 0 }
            return max(0, min(Int(String(decoding: digits, as: UTF8.self)) ?? .max, 10 * year) - spent)
        }
        if let expires {
            guard let end = time(of: expires) else { return 0 }
            return max(0, min(end - (date.flatMap(time(of:)) ?? now), 10 * year) - spent)
        }
        return directives.contains("immutable") ? max(0, year - spent) : nil
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Parses an HTTP date in any of its three forms into seconds since 1970.
    static func time(of text: String) -> Int? {
        let time = curl_getdate(text, nil)
        return time < 0 ? nil : Int(time)
    }
}
