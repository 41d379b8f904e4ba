internal import CCurl

/// How long a response may be used without asking again (RFC 9111, section 4.2; RFC 8246 for `immutable`), by a cache of one user:
/// `s-maxage` is for shared ones.
enum Freshness {
    /// What `immutable` means where nothing says how long.
    static let year = 31_536_000

    /// Seconds from now on, 0 for a response that is to be asked for each time; nil where the server says nothing.
    ///
    /// * `control`: every `Cache-Control` line.
    /// * `now`: seconds since 1970, where there is no `Date`.
    static func seconds(control: [String], expires: String?, date: String?, age: String?, now: Int) -> Int? {
        let directives = control.flatMap { $0.split(separator: ",") }.map { directive in
            directive.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }.lowercased()
        }
        // `no-cache="field"` is about that field alone.
        if directives.contains("no-store") || directives.contains("no-cache") { return 0 }
        let spent = max(0, age.flatMap { Int($0) } ?? 0)
        if let value = directives.first(where: { $0.hasPrefix("max-age=") })?.dropFirst(8) {
            // What is no number is stale (section 4.2.1).
            let digits = value.filter { $0 != "\"" }
            guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return 0 }
            return max(0, min(Int(digits) ?? .max, 10 * year) - spent)
        }
        if let expires {
            guard let end = time(of: expires) else { return 0 }
            return max(0, min(end - (date.flatMap(time(of:)) ?? now), 10 * year) - spent)
        }
        return directives.contains("immutable") ? max(0, year - spent) : nil
    }

    /// A date of HTTP, in any of its three forms, as seconds since 1970.
    static func time(of text: String) -> Int? {
        let time = curl_getdate(text, nil)
        return time < 0 ? nil : Int(time)
    }
}
