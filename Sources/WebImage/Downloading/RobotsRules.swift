/// The robots.txt rules for one program (RFC 9309).
struct RobotsRules: Sendable, Equatable {
    private struct Rule: Equatable {
        var allows: Bool
        var pattern: [UInt8]
    }

    private var rules: [Rule] = []
    /// Seconds between two requests, above 0 and at most ``maxDelay``: `Crawl-delay`, which is no part of the standard; the longest of the
    /// groups that apply. Nil: the site asks for none.
    private(set) var delay: Double?

    /// Longer delays count as this, in seconds.
    static let maxDelay = 60.0

    /// The part of a file that is read (RFC 9309, section 2.5: at least 500 KiB).
    static let maxBytes = 512 << 10

    static let none = RobotsRules(text: "", agent: "")

    /// The rules of the groups for `agent` (case-insensitive); if there are none, those for `*`.
    init(text: String, agent: String) {
        var own: [Rule] = []
        var others: [Rule] = []
        var (ownDelay, otherDelay) = (0.0, 0.0)
        var isNamed = false
        var appliesToAgent = false
        var appliesToAll = false
        var isInAgents = false
        for line in text.utf8.split(whereSeparator: { $0 == 10 || $0 == 13 }) {
            let plain = line.prefix { $0 != UInt8(ascii: "#") }
            guard let colon = plain.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let key = Self.trimmed(plain[..<colon]).asciiLowercased
            let value = Self.trimmed(plain[plain.index(after: colon)...])
            switch key {
            case "user-agent":
                if !isInAgents { (appliesToAgent, appliesToAll) = (false, false) }
                isInAgents = true
                if value == "*" { appliesToAll = true }
                // The product token ends at the first other character: `prefetch/1.0`.
                let token = Substring(value.utf8.prefix(while: Self.isTokenByte))
                if !token.isEmpty && token.isASCIICaseInsensitivelyEqual(to: agent) {
                    (appliesToAgent, isNamed) = (true, true)
                }
            case "allow", "disallow":
                isInAgents = false
                // An empty rule disallows nothing.
                guard !value.isEmpty else { continue }
                let rule = Rule(allows: key == "allow", pattern: Self.normalised(value.utf8))
                if appliesToAgent { own.append(rule) }
                if appliesToAll { others.append(rule) }
            case "crawl-delay":
                // A rule as the others: the next user-agent line begins another group.
                isInAgents = false
                guard let seconds = Double(value), seconds.isFinite else { continue }
                if appliesToAgent { ownDelay = max(ownDelay, seconds) }
                if appliesToAll { otherDelay = max(otherDelay, seconds) }
            default: break
            }
        }
        rules = isNamed ? own : others
        let seconds = min(isNamed ? ownDelay : otherDelay, Self.maxDelay)
        delay = seconds > 0 ? seconds : nil
    }

    var text: String {
        var text = "User-agent: *\n" + (delay.map { "Crawl-delay: \($0)\n" } ?? "")
        for rule in rules {
            text += (rule.allows ? "Allow: " : "Disallow: ") + String(decoding: rule.pattern, as: UTF8.self) + "\n"
        }
        return text
    }

    /// Whether a path with its query is allowed: the longest matching rule decides, `Allow` on a tie.
    func allow(_ target: String) -> Bool {
        guard !rules.isEmpty, target != "/robots.txt" else { return true }
        let path = Self.normalised(target.utf8)
        var best = (length: -1, allows: true)
        for rule in rules where Self.matches(rule.pattern[...], path[...]) {
            if rule.pattern.count > best.length || rule.pattern.count == best.length && rule.allows {
                best = (rule.pattern.count, rule.allows)
            }
        }
        return best.allows
    }

    /// `*` matches any bytes, a final `$` the end; otherwise a prefix match suffices.
    private static func matches(_ pattern: ArraySlice<UInt8>, _ path: ArraySlice<UInt8>) -> Bool {
        let endsThere = pattern.last == UInt8(ascii: "$")
        let pattern = endsThere ? pattern.dropLast() : pattern
        var (p, t) = (pattern.startIndex, path.startIndex)
        // Position of the last star and the length of its match: the only backtracking point needed.
        var star: (pattern: Int, path: Int)?
        while true {
            if p == pattern.endIndex {
                if !endsThere || t == path.endIndex { return true }
            } else if pattern[p] == UInt8(ascii: "*") {
                star = (p, t)
                p += 1
                continue
            } else if t < path.endIndex, pattern[p] == path[t] {
                p += 1
                t += 1
                continue
            }
            guard let last = star, last.path < path.endIndex else { return false }
            star = (last.pattern, last.path + 1)
            p = last.pattern + 1
            t = last.path + 1
        }
    }

    /// Normalises a path (RFC 9309, section 2.2.2): non-ASCII percent-encoded, unreserved characters decoded, hex in capitals.
    private static func normalised(_ text: some Collection<UInt8>) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        var rest = Array(text)[...]
        func value(_ byte: UInt8) -> UInt8? { Character(UnicodeScalar(byte)).hexDigitValue.map { UInt8($0) } }
        while let byte = rest.popFirst() {
            var plain = byte
            var wasEncoded = false
            if byte == UInt8(ascii: "%"), rest.count >= 2, let high = value(rest[rest.startIndex]),
                let low = value(rest[rest.startIndex + 1])
            {
                plain = high << 4 | low
                wasEncoded = true
                rest.removeFirst(2)
            }
            let isUnreserved =
                switch plain {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                    UInt8(ascii: "~"):
                    true
                default: false
                }
            if isUnreserved || !wasEncoded && plain < 0x80 {
                bytes.append(plain)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(plain >> 4)], digits[Int(plain & 15)]]
            }
        }
        return bytes
    }

    /// Of a product token (RFC 9309, section 2.2.1).
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }

    private static func trimmed(_ bytes: Substring.UTF8View.SubSequence) -> String {
        var text = bytes
        while let first = text.first, first == 32 || first == 9 { text = text.dropFirst() }
        while let last = text.last, last == 32 || last == 9 { text = text.dropLast() }
        // Removes the byte order mark before the first line.
        return String(decoding: text, as: UTF8.self).replacing("\u{FEFF}", with: "")
    }
}

/// The prohibitions of `X-Robots-Tag` for programs that collect images.
enum RobotsTag {
    /// Those that img2dataset refuses by default; `noml`, by which sites say the same; `none`, which is noindex and nofollow.
    private static let refused: Set<ByteText> = ["noai", "noimageai", "noindex", "noimageindex", "noml", "none"]
    private static let everyone: Set<ByteText> = ["*", "robots"]
    /// Directives with a value, whose name is not a program.
    private static let valued: Set<ByteText> = [
        "unavailable_after", "max-snippet", "max-image-preview", "max-video-preview",
    ]

    /// Why an image is refused, and which options of the commands take it.
    static func message(_ directive: String) -> String {
        "X-Robots-Tag: \(directive); --ignore-robots-tag takes it, --own-host skips all rules of a host you own"
    }

    /// The first prohibition in the lines of a response; nil if there is none. Directives are separated by commas; semicolons, spaces and quotes, with
    /// which some sites separate them, do so too, since no directive has them. A name with a colon before them is that of the program they are
    /// for, up to the next such name or the end of the line, unless it is the name of a directive with a value, or a part of a date.
    static func refusal(of lines: [String], agent: String) -> String? {
        for line in lines {
            var concernsUs = true
            for part in line.utf8.split(whereSeparator: { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: ";") }) {
                var rest = part
                while true {
                    let colon = rest.firstIndex(of: UInt8(ascii: ":"))
                    var words = Self.words(of: rest[..<(colon ?? rest.endIndex)])
                    let name = colon == nil ? nil : words.popLast()
                    if concernsUs, let directive = words.first(where: { refused.contains($0) }) { return directive }
                    guard let colon else { break }
                    rest = rest[colon...].dropFirst()
                    guard let name, let first = name.utf8.first, !(0x30...0x39).contains(first) else { continue }
                    if valued.contains(name) {
                        rest = rest.drop(while: isSpace).drop { !isSpace($0) }
                    } else {
                        concernsUs = everyone.contains(name) || name.isASCIICaseInsensitivelyEqual(to: agent)
                    }
                }
            }
        }
        return nil
    }

    private static func words(of bytes: Substring.UTF8View) -> [String] {
        bytes.split { isSpace($0) || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "'") }
            .map { Substring($0).asciiLowercased }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
