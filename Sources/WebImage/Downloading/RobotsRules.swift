internal import CLinux
internal import Glibc

/// The robots.txt rules for one program (RFC 9309), within bounds: what is over them is read as the stricter of two, or is not read.
struct RobotsRules: Sendable, Equatable {
    /// A rule whose pattern is a part of ``patterns``.
    private struct Rule: Equatable {
        var start: Int32
        var length: Int32
        var allows: Bool
    }

    enum Verdict: Sendable {
        case allowed, disallowed
        /// To know it takes more than ``maxSteps``.
        case unknown
    }

    /// The longest first, as the longest that matches decides; of two as long as each other what allows.
    private var rules: [Rule] = []
    /// The patterns of all rules, one after the other.
    private var patterns: [UInt8] = []
    /// Seconds between two requests, above 0 and at most ``maxDelay``: `Crawl-delay`, which is no part of the standard; the longest of the
    /// groups that apply. Nil: the site asks for none.
    private(set) var delay: Double?

    /// Longer delays count as this, in seconds.
    static let maxDelay = 60.0

    /// The part of a file that is read (RFC 9309, section 2.5: at least 500 KiB).
    static let maxBytes = 512 << 10
    /// The rules that are kept.
    static let maxRules = 16_384
    /// The bytes of one that are: a longer one that disallows is cut, one that allows is left out.
    static let maxPattern = 2_048
    /// The bytes that are compared for one URL.
    static let maxSteps = 1 << 22

    static let none = RobotsRules(text: "", agent: "")

    /// The bytes that it holds.
    var byteCount: Int { 256 + patterns.count + rules.count * MemoryLayout<Rule>.stride }

    /// Reads a file as text.
    init(text: String, agent: String) { self.init(text.utf8, agent: agent) }

    /// The rules of the groups for `agent` (case-insensitive); if there are none, those for `*`.
    init(_ file: some Sequence<UInt8>, agent: String) {
        let bytes = Array(file.prefix(Self.maxBytes))
        let agent = agent.utf8.map(Self.lower)
        var own = Group()
        var others = Group()
        var isNamed = false
        var (appliesToAgent, appliesToAll, isInAgents) = (false, false, false)
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        for line in bytes[start...].split(whereSeparator: { $0 == 10 || $0 == 13 }) {
            let plain = line.prefix { $0 != UInt8(ascii: "#") }
            guard let colon = plain.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let value = Self.trimmed(plain[(colon + 1)...])
            switch Key(Self.trimmed(plain[..<colon])) {
            case .agent:
                if !isInAgents { (appliesToAgent, appliesToAll) = (false, false) }
                isInAgents = true
                if value.elementsEqual("*".utf8) { appliesToAll = true }
                // The product token ends at the first other character: `prefetch/1.0`.
                let token = value.prefix(while: Self.isTokenByte)
                if !token.isEmpty && token.lazy.map(Self.lower).elementsEqual(agent) {
                    (appliesToAgent, isNamed) = (true, true)
                }
            case .allow: add(value, true)
            case .disallow: add(value, false)
            case .delay:
                // A rule as the others: the next user-agent line begins another group.
                isInAgents = false
                guard let seconds = Double(String(decoding: value.prefix(64), as: UTF8.self)), seconds.isFinite else {
                    continue
                }
                if appliesToAgent { own.delay = max(own.delay, seconds) }
                if appliesToAll { others.delay = max(others.delay, seconds) }
            case nil: break
            }
        }
        func add(_ value: ArraySlice<UInt8>, _ allows: Bool) {
            isInAgents = false
            // An empty rule disallows nothing.
            guard !value.isEmpty, appliesToAgent || appliesToAll else { return }
            let pattern = Self.normalised(value)
            if appliesToAgent { own.add(pattern, allows) }
            if appliesToAll { others.add(pattern, allows) }
        }
        let group = isNamed ? own : others
        // In the order in which they are asked, so that rules and their text say the same.
        for rule in group.rules.sorted(by: {
            ($1.length, $0.allows ? 0 : 1, $0.start) < ($0.length, $1.allows ? 0 : 1, $1.start)
        }) {
            rules.append(Rule(start: Int32(patterns.count), length: rule.length, allows: rule.allows))
            patterns += group.patterns[Int(rule.start)..<Int(rule.start + rule.length)]
        }
        let seconds = min(group.delay, Self.maxDelay)
        delay = seconds > 0 ? seconds : nil
    }

    private struct Group {
        var rules: [Rule] = []
        var patterns: [UInt8] = []
        var delay = 0.0

        mutating func add(_ pattern: [UInt8], _ allows: Bool) {
            guard rules.count < RobotsRules.maxRules, pattern.count <= RobotsRules.maxPattern || !allows else { return }
            let kept = pattern.prefix(RobotsRules.maxPattern)
            rules.append(Rule(start: Int32(patterns.count), length: Int32(kept.count), allows: allows))
            patterns += kept
        }
    }

    private enum Key {
        case agent, allow, disallow, delay

        init?(_ text: ArraySlice<UInt8>) {
            func isNamed(_ name: StaticString) -> Bool {
                name.withUTF8Buffer { text.count == $0.count && text.lazy.map(RobotsRules.lower).elementsEqual($0) }
            }
            if isNamed("disallow") {
                self = .disallow
            } else if isNamed("allow") {
                self = .allow
            } else if isNamed("user-agent") {
                self = .agent
            } else if isNamed("crawl-delay") {
                self = .delay
            } else {
                return nil
            }
        }
    }

    var text: String {
        var text = Array(("User-agent: *\n" + (delay.map { "Crawl-delay: \($0)\n" } ?? "")).utf8)
        for rule in rules {
            text += (rule.allows ? "Allow: " : "Disallow: ").utf8
            text += patterns[Int(rule.start)..<Int(rule.start + rule.length)]
            text.append(UInt8(ascii: "\n"))
        }
        return String(decoding: text, as: UTF8.self)
    }

    // MARK: Matching

    /// Whether a path with its query is allowed: the longest matching rule decides, `Allow` on a tie.
    func verdict(on target: String) -> Verdict { judge(target).verdict }

    /// The verdict, and the bytes that were compared for it.
    func judge(_ target: String) -> (verdict: Verdict, steps: Int) {
        guard !rules.isEmpty, !target.hasBytes(of: "/robots.txt") else { return (.allowed, 0) }
        let path = Self.normalised(target.utf8)
        var steps = path.count
        let verdict = path.withUnsafeBytes { path in
            patterns.withUnsafeBytes { patterns -> Verdict in
                for rule in rules {
                    let pattern = UnsafeRawBufferPointer(
                        rebasing: patterns[Int(rule.start)..<Int(rule.start + rule.length)])
                    if Self.matches(pattern, path, &steps) { return rule.allows ? .allowed : .disallowed }
                    if steps > Self.maxSteps { return .unknown }
                }
                return .allowed
            }
        }
        return (verdict, steps)
    }

    /// `*` matches any bytes, a final `$` the end; otherwise a prefix match suffices. What is between stars is taken where it comes first,
    /// which leaves most for the rest, so nothing is ever taken back: each byte of the path is looked at once.
    private static func matches(
        _ pattern: UnsafeRawBufferPointer, _ path: UnsafeRawBufferPointer, _ steps: inout Int
    ) -> Bool {
        let endsThere = pattern.last == UInt8(ascii: "$")
        var pattern = endsThere ? pattern[..<(pattern.endIndex - 1)] : pattern[...]
        var place = 0
        var isFirst = true
        while true {
            let star = pattern.firstIndex(of: UInt8(ascii: "*"))
            let part = UnsafeRawBufferPointer(rebasing: pattern[..<(star ?? pattern.endIndex)])
            let isLast = star == nil
            steps += 1
            if isFirst || isLast && endsThere {
                // At its place: the beginning, or the end.
                let at = isFirst ? 0 : path.count - part.count
                guard at >= place, at + part.count <= path.count,
                    !(isFirst && isLast && endsThere) || part.count == path.count
                else { return false }
                steps += part.count
                guard part.isEmpty || isEqual(part, path, at) else { return false }
                place = at + part.count
            } else if let first = part.baseAddress, !part.isEmpty {
                // Linear: glibc's memmem is the two-way algorithm.
                let left = path.count - place
                guard part.count <= left, let base = path.baseAddress,
                    case let found = clinux_find(base + place, left, first, part.count), found >= 0
                else {
                    steps += part.count <= left ? left + part.count : 0
                    return false
                }
                steps += Int(found) + part.count
                place += Int(found) + part.count
            }
            guard let star else { return true }
            pattern = pattern[(star + 1)...]
            isFirst = false
        }
    }

    private static func isEqual(_ part: UnsafeRawBufferPointer, _ path: UnsafeRawBufferPointer, _ at: Int) -> Bool {
        guard let one = part.baseAddress, let other = path.baseAddress else { return false }
        return memcmp(one, other + at, part.count) == 0
    }

    // MARK: Text

    /// Normalises a path (RFC 9309, section 2.2.2): non-ASCII percent-encoded, unreserved characters decoded, hex in capitals.
    private static func normalised(_ text: some Sequence<UInt8>) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        let all = Array(text)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(all.count)
        var place = 0
        while place < all.count {
            var plain = all[place]
            var wasEncoded = false
            if plain == UInt8(ascii: "%"), place + 2 < all.count, let high = digit(all[place + 1]),
                let low = digit(all[place + 2])
            {
                plain = high << 4 | low
                wasEncoded = true
                place += 2
            }
            place += 1
            if isUnreserved(plain) || !wasEncoded && plain < 0x80 {
                bytes.append(plain)
            } else {
                bytes.append(UInt8(ascii: "%"))
                bytes.append(digits[Int(plain >> 4)])
                bytes.append(digits[Int(plain & 15)])
            }
        }
        return bytes
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46, 0x61...0x66: (byte | 0x20) - 0x61 + 10
        default: nil
        }
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// Of a product token (RFC 9309, section 2.2.1).
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }

    private static func lower(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var text = bytes.drop { $0 == 32 || $0 == 9 }
        while let last = text.last, last == 32 || last == 9 { text.removeLast() }
        return text
    }
}
