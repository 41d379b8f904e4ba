internal import CPCRE2

/// A regular expression in Perl's syntax (PCRE2) over bytes: `.` is any byte, and nothing is known of Unicode. Compiled once, used by any
/// thread. What a search may cost is bounded, because patterns and URLs come from people who need not trust each other.
final class BytePattern: Sendable, Equatable, CustomStringConvertible {
    /// Two spans of the subject, in bytes: of the match, and of its groups; nil for one that took no part.
    typealias Match = (span: Range<Int>, groups: [Range<Int>?])

    /// Its text.
    let description: String
    private let compiled: cpcre2_pattern

    /// The number of groups.
    var groups: Int { Int(cpcre2_groups(compiled)) }

    /// Compiles a pattern.
    /// - Throws: `invalidConfiguration` with PCRE2's words and the place.
    init(_ text: String) throws(WebImageError) {
        var objection = cpcre2_objection()
        description = text
        compiled = text.utf8.span.withUnsafeBytes {
            cpcre2_compile($0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count, &objection)
        }
        guard compiled == 0 else { return }
        let words = withUnsafeBytes(of: objection.message) {
            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        throw WebImageError(
            .invalidConfiguration,
            "'\(text)' is not a regular expression: \(words.isEmpty ? "no memory" : words), at byte \(objection.place)")
    }

    deinit { if compiled != 0 { cpcre2_free(compiled) } }

    static func == (one: BytePattern, other: BytePattern) -> Bool {
        one.description.hasBytes(of: other.description)
    }

    /// The number of a named group; nil if there is none.
    func group(named name: String) -> Int? {
        let number = cpcre2_group(compiled, name)
        return number > 0 ? Int(number) : nil
    }

    /// Whether there is a match.
    /// - Throws: `invalidURL` if that takes more steps than a search may.
    func matches(_ subject: String) throws(WebImageError) -> Bool {
        var isFound = false
        try search(subject) { _, _ in
            isFound = true
            return false
        }
        return isFound
    }

    /// Finds the matches one after the other, as Perl does with `/g`.
    /// * `body`: returns whether to go on.
    /// - Throws: `invalidURL` if that takes more steps than a search may.
    func search(
        _ subject: String, _ body: (UnsafeBufferPointer<UInt8>, Match) -> Bool
    ) throws(WebImageError) {
        guard run(on: subject, body).isDone else {
            throw WebImageError(
                .invalidURL,
                "the pattern \(description) takes more steps than it may on this URL: "
                    + "\(CPCRE2_STEPS), \(CPCRE2_MATCH_LIMIT) from one place, or \(CPCRE2_HEAP_KIB / 1024) MiB")
        }
    }

    /// The steps that the search for all matches takes, at most as many as it may.
    func steps(on subject: String) -> Int { run(on: subject) { _, _ in true }.steps }

    private func run(
        on subject: String, _ body: (UnsafeBufferPointer<UInt8>, Match) -> Bool
    ) -> (isDone: Bool, steps: Int) {
        subject.utf8.span.withUnsafeBytes { bytes in
            var search = cpcre2_search()
            return withUnsafeMutablePointer(to: &search) { search in
                defer { cpcre2_end(search) }
                guard cpcre2_begin(search, compiled) else { return (false, 0) }
                let isDone = find(bytes.bindMemory(to: UInt8.self), search, body)
                return (isDone, CPCRE2_STEPS - Int(search.pointee.steps))
            }
        }
    }

    /// Returns whether it came to an end within the limits.
    private func find(
        _ bytes: UnsafeBufferPointer<UInt8>, _ search: UnsafeMutablePointer<cpcre2_search>,
        _ body: (UnsafeBufferPointer<UInt8>, Match) -> Bool
    ) -> Bool {
        var place = 0
        var isAfterEmpty = false
        while place <= bytes.count {
            // After an empty match there may be another one at the same place, but not an empty one.
            let options = isAfterEmpty ? PCRE2_ANCHORED | PCRE2_NOTEMPTY_ATSTART : 0
            switch cpcre2_next(search, compiled, bytes.baseAddress, bytes.count, place, options) {
            case CPCRE2_FOUND: break
            case CPCRE2_NONE:
                guard isAfterEmpty else { return true }
                place += 1
                isAfterEmpty = false
                continue
            default: return false
            }
            let spans = (0...groups).map { group -> Range<Int>? in
                let (lower, upper) = (cpcre2_lower(search, UInt32(group)), cpcre2_upper(search, UInt32(group)))
                // What took no part is at -1.
                return lower >= 0 && lower <= upper && upper <= bytes.count ? lower..<upper : nil
            }
            // \K in an assertion can say that a match ends before it begins.
            guard let span = spans[0], span.lowerBound >= place || !isAfterEmpty else { return true }
            guard body(bytes, (span, Array(spans.dropFirst()))) else { return true }
            isAfterEmpty = span.isEmpty
            guard span.upperBound > place || isAfterEmpty else { return true }
            place = span.upperBound
        }
        return true
    }
}

/// The library that finds patterns.
package enum PatternLibrary {
    /// For example `PCRE2 10.42`.
    package static var version: String {
        var text = [CChar](repeating: 0, count: 64)
        cpcre2_version(&text)
        let words = text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        return "PCRE2 \(words.prefix { $0 != " " })"
    }
}

/// What a match is replaced by: text, and `$1` to `$99`, `${1}`, `${name}`, `$0` or `$&` for the whole match; `\1` to `\9` as in sed. `$$`
/// is a dollar, and a backslash takes the next character as itself.
struct PatternReplacement: Sendable, Equatable, CustomStringConvertible {
    private enum Part: Sendable, Equatable {
        case text([UInt8])
        case group(Int)
    }

    let description: String
    private let parts: [Part]

    static func == (one: PatternReplacement, other: PatternReplacement) -> Bool {
        one.description.hasBytes(of: other.description)
    }

    /// Reads a replacement.
    /// - Throws: `invalidConfiguration` with the place of a group that the pattern does not have.
    init(_ text: String, in pattern: BytePattern) throws(WebImageError) {
        var parts: [Part] = []
        var plain: [UInt8] = []
        let bytes = Array(text.utf8)
        var place = 0
        while place < bytes.count {
            let first = bytes[place]
            let isDollar = first == UInt8(ascii: "$")
            guard isDollar || first == UInt8(ascii: "\\") else {
                plain.append(first)
                place += 1
                continue
            }
            let rest = bytes[(place + 1)...]
            let reference = isDollar ? Self.reference(rest, in: pattern) : Self.escaped(rest)
            guard let (group, length) = reference, group ?? 0 <= pattern.groups else {
                throw WebImageError(
                    .invalidConfiguration,
                    "'\(text)' is no replacement: no such group of \(pattern), at byte \(place); a dollar is $$, a backslash \\\\"
                )
            }
            if let group {
                parts += [.text(plain), .group(group)]
                plain = []
            } else if let next = rest.first {
                plain.append(next)
            }
            place += 1 + length
        }
        parts.append(.text(plain))
        self.parts = parts.filter { $0 != .text([]) }
        description = text
    }

    /// What stands behind a dollar, and its length; no group: it stands for itself. Nil: neither.
    private static func reference(_ rest: ArraySlice<UInt8>, in pattern: BytePattern) -> (group: Int?, length: Int)? {
        switch rest.first {
        case UInt8(ascii: "$"): return (nil, 1)
        case UInt8(ascii: "&"): return (0, 1)
        case UInt8(ascii: "{"):
            guard let end = rest.firstIndex(of: UInt8(ascii: "}")) else { return nil }
            let name = String(decoding: rest[rest.startIndex + 1..<end], as: UTF8.self)
            let isNumber = !name.isEmpty && name.utf8.allSatisfy(isDigit)
            return (isNumber ? Int(name) : pattern.group(named: name)).map { ($0, end + 1 - rest.startIndex) }
        default:
            let digits = rest.prefix(2).prefix(while: isDigit)
            return Int(String(decoding: digits, as: UTF8.self)).map { ($0, digits.count) }
        }
    }

    private static func escaped(_ rest: ArraySlice<UInt8>) -> (group: Int?, length: Int)? {
        guard let next = rest.first else { return nil }
        return isDigit(next) ? (Int(next - UInt8(ascii: "0")), 1) : (nil, 1)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

    func append(_ match: BytePattern.Match, of subject: UnsafeBufferPointer<UInt8>, to result: inout [UInt8]) {
        for part in parts {
            switch part {
            case .text(let text): result += text
            case .group(0): result += subject[match.span]
            case .group(let group): if let span = match.groups[group - 1] { result += subject[span] }
            }
        }
    }
}
