internal import PrefetchModel

/// The members of an object on one line (RFC 8259), by their bytes: what rows of tables and of `json.dumps` are. Nil for anything odd, on which
/// Foundation decides: an escape of half a character, a name that occurs twice, bytes that are no UTF-8.
struct JSONMembers {
    struct Member {
        let name: String
        /// The value as it is written.
        let range: Range<Int>
        let kind: Kind
    }

    enum Kind {
        case string, number, literal, null, array, object
    }

    private static let deepest = 64

    private(set) var members: [Member] = []
    private let bytes: [UInt8]

    init?(_ line: [UInt8]) {
        bytes = line
        guard line.count < Int(Int32.max), (try? UTF8Span(validating: line.span)) != nil else { return nil }
        var scanner = JSONScanner(line)
        var members: [Member] = []
        let isObject = scanner.object { scanner, name in
            guard let text = Self.text(line, name) else { return false }
            scanner.skipBlanks()
            let start = scanner.place
            guard let kind = scanner.value(depth: Self.deepest) else { return false }
            members.append(Member(name: text, range: start..<scanner.place, kind: kind))
            return true
        }
        scanner.skipBlanks()
        guard isObject, scanner.place == line.count, Set(members.map { ByteText($0.name) }).count == members.count
        else { return nil }
        self.members = members
    }

    subscript(name: String) -> Member? { members.first { $0.name.hasBytes(of: name) } }

    /// The text of a string; nil of what is none, or odd.
    func string(_ member: Member) -> String? {
        member.kind == .string ? Self.text(bytes, member.range) : nil
    }

    /// The values of an object; nil of what is none, or odd.
    func columns(_ member: Member) -> [String: ColumnValue]? {
        guard member.kind == .object, let inner = JSONMembers(Array(bytes[member.range])) else { return nil }
        var values: [String: ColumnValue] = [:]
        for item in inner.members {
            if item.kind == .string {
                guard let text = inner.string(item) else { return nil }
                values[item.name] = .text(text)
            } else {
                values[item.name] = .json(String(decoding: inner.raw(item), as: UTF8.self))
            }
        }
        return values.count == inner.members.count ? values : nil
    }

    /// The value as it is written.
    func raw(_ member: Member) -> ArraySlice<UInt8> { bytes[member.range] }

    /// A text as a string of JSON.
    static func quoted(_ text: some Sequence<UInt8>) -> [UInt8] {
        var out: [UInt8] = [UInt8(ascii: "\"")]
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += [UInt8(ascii: "\\"), byte]
            case UInt8(ascii: "\n"): out += Array("\\n".utf8)
            case UInt8(ascii: "\r"): out += Array("\\r".utf8)
            case UInt8(ascii: "\t"): out += Array("\\t".utf8)
            case 0..<0x20:
                let digits = Array("0123456789abcdef".utf8)
                out += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: out.append(byte)
            }
        }
        out.append(UInt8(ascii: "\""))
        return out
    }

    /// What is between the quotes of a range.
    private static func text(_ bytes: [UInt8], _ range: Range<Int>) -> String? {
        let inner = bytes[(range.lowerBound + 1)..<(range.upperBound - 1)]
        guard let first = inner.firstIndex(of: UInt8(ascii: "\\")) else {
            return String(decoding: inner, as: UTF8.self)
        }
        var out = Array(inner[..<first])
        var index = first
        while index < inner.endIndex {
            guard inner[index] == UInt8(ascii: "\\") else {
                out.append(inner[index])
                index += 1
                continue
            }
            switch inner[index + 1] {
            case UInt8(ascii: "b"): out.append(0x08)
            case UInt8(ascii: "f"): out.append(0x0C)
            case UInt8(ascii: "n"): out.append(0x0A)
            case UInt8(ascii: "r"): out.append(0x0D)
            case UInt8(ascii: "t"): out.append(0x09)
            case UInt8(ascii: "u"):
                guard let (scalar, end) = scalar(inner, index) else { return nil }
                out += UTF8.encode(scalar).map { Array($0) } ?? []
                index = end
                continue
            case let byte: out.append(byte)
            }
            index += 2
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// The character of `\u0041`, or of two of these that are one.
    private static func scalar(_ text: ArraySlice<UInt8>, _ index: Int) -> (UnicodeScalar, end: Int)? {
        func unit(_ index: Int) -> UInt32? {
            guard index + 6 <= text.endIndex, text[index] == UInt8(ascii: "\\"), text[index + 1] == UInt8(ascii: "u")
            else { return nil }
            return UInt32(String(decoding: text[(index + 2)..<(index + 6)], as: UTF8.self), radix: 16)
        }
        guard let first = unit(index) else { return nil }
        if let scalar = UnicodeScalar(first) { return (scalar, index + 6) }
        guard first < 0xDC00, let second = unit(index + 6), (0xDC00..<0xE000).contains(second),
            let scalar = UnicodeScalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { return nil }
        return (scalar, index + 12)
    }
}

/// Walks over a text of JSON, and checks its grammar.
struct JSONScanner {
    private let bytes: [UInt8]
    private(set) var place = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    private var next: UInt8? { place < bytes.count ? bytes[place] : nil }

    mutating func skipBlanks() {
        while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { place += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        place += 1
        return true
    }

    /// An object; `member` gets the range of each name with its quotes, and has to walk over the value.
    mutating func object(_ member: (inout JSONScanner, Range<Int>) -> Bool) -> Bool {
        skipBlanks()
        guard take(UInt8(ascii: "{")) else { return false }
        skipBlanks()
        if take(UInt8(ascii: "}")) { return true }
        while true {
            skipBlanks()
            let start = place
            guard string() else { return false }
            let name = start..<place
            skipBlanks()
            guard take(UInt8(ascii: ":")), member(&self, name) else { return false }
            skipBlanks()
            if take(UInt8(ascii: "}")) { return true }
            guard take(UInt8(ascii: ",")) else { return false }
        }
    }

    /// Any value; nil if there is none.
    mutating func value(depth: Int) -> JSONMembers.Kind? {
        skipBlanks()
        switch next {
        case UInt8(ascii: "\""): return string() ? .string : nil
        case UInt8(ascii: "{"):
            return depth > 0 && object({ scanner, _ in scanner.value(depth: depth - 1) != nil }) ? .object : nil
        case UInt8(ascii: "["): return depth > 0 && array(depth - 1) ? .array : nil
        case UInt8(ascii: "t"): return word("true") ? .literal : nil
        case UInt8(ascii: "f"): return word("false") ? .literal : nil
        case UInt8(ascii: "n"): return word("null") ? .null : nil
        default: return number() ? .number : nil
        }
    }

    private mutating func array(_ depth: Int) -> Bool {
        place += 1
        skipBlanks()
        if take(UInt8(ascii: "]")) { return true }
        while value(depth: depth) != nil {
            skipBlanks()
            if take(UInt8(ascii: "]")) { return true }
            guard take(UInt8(ascii: ",")) else { return false }
        }
        return false
    }

    private mutating func word(_ word: StaticString) -> Bool {
        let isThere = word.withUTF8Buffer { bytes[place...].starts(with: $0) }
        if isThere { place += word.utf8CodeUnitCount }
        return isThere
    }

    /// A string, whose escapes are right but for halves of characters.
    private mutating func string() -> Bool {
        guard take(UInt8(ascii: "\"")) else { return false }
        while let byte = next {
            place += 1
            if byte == UInt8(ascii: "\"") { return true }
            if byte < 0x20 { return false }
            guard byte == UInt8(ascii: "\\") else { continue }
            guard let escaped = next else { return false }
            place += 1
            if escaped == UInt8(ascii: "u") {
                let digits = bytes[place..<min(place + 4, bytes.count)]
                guard digits.count == 4, digits.allSatisfy(Self.isHex) else { return false }
                place += 4
            } else if !"\"\\/bfnrt".utf8.contains(escaped) {
                return false
            }
        }
        return false
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte | 0x20)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private mutating func number() -> Bool {
        _ = take(UInt8(ascii: "-"))
        guard take(UInt8(ascii: "0")) || digits() else { return false }
        if take(UInt8(ascii: ".")) { guard digits() else { return false } }
        guard take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) else { return true }
        _ = take(UInt8(ascii: "-")) || take(UInt8(ascii: "+"))
        return digits()
    }

    private mutating func digits() -> Bool {
        let start = place
        while let byte = next, Self.isDigit(byte) { place += 1 }
        return place > start
    }
}
