internal import PrefetchModel

/// The members of an object on one line (RFC 8259), by their bytes: what rows of tables and of `json.dumps` are. Nil for anything odd, on which
/// Foundation decides: an escape of half a character, a name that occurs twice, bytes that are no UTF-8.
struct JSONMembers {
    struct Member {
        /// Of the name, in its quotes.
        fileprivate let name: Range<Int>
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
        guard line.count < Int(Int32.max), (try? UTF8Span(validating: line.span)) != nil else { return nil }
        self.init(line, line.indices)
    }

    /// * `range`: of the object in a line that is UTF-8.
    private init?(_ line: [UInt8], _ range: Range<Int>) {
        bytes = line
        var scanner = JSONScanner(line, range)
        var members: [Member] = []
        members.reserveCapacity(8)
        let isObject = scanner.object { scanner, name in
            scanner.skipBlanks()
            let start = scanner.place
            guard let kind = scanner.value(depth: Self.deepest) else { return false }
            members.append(Member(name: name, range: start..<scanner.place, kind: kind))
            return true
        }
        scanner.skipBlanks()
        guard isObject, scanner.place == range.upperBound else { return nil }
        self.members = members
        guard hasSoundNames else { return nil }
    }

    /// Whether each name is a text, and is there once.
    private var hasSoundNames: Bool {
        if members.count > 16 || members.contains(where: { isEscaped($0.name) }) {
            let names = Set(members.compactMap { Self.text(bytes, $0.name).map { ByteText($0) } })
            return names.count == members.count
        }
        return members.indices.allSatisfy { place in
            let name = bytes[members[place].name]
            return !members[..<place].contains { $0.name.count == name.count && bytes[$0.name].elementsEqual(name) }
        }
    }

    func name(_ member: Member) -> String { Self.text(bytes, member.name) ?? "" }

    var names: [String] { members.map { name($0) } }

    /// A name as it is written, in quotes.
    func rawName(_ member: Member) -> ArraySlice<UInt8> { bytes[member.name] }

    /// Whether a member is called so.
    func isCalled(_ name: StaticString, _ member: Member) -> Bool {
        name.withUTF8Buffer { isCalled(UnsafeRawBufferPointer($0), member) }
    }

    /// * `name`: UTF-8.
    func isCalled(_ name: [UInt8], _ member: Member) -> Bool { name.withUnsafeBytes { isCalled($0, member) } }

    private func isCalled(_ name: UnsafeRawBufferPointer, _ member: Member) -> Bool {
        guard !isEscaped(member.name) else { return self.name(member).utf8.elementsEqual(name) }
        return member.name.count == name.count + 2 && bytes[member.name.dropFirst().dropLast()].elementsEqual(name)
    }

    subscript(name: StaticString) -> Member? { members.first { isCalled(name, $0) } }
    subscript(name: String) -> Member? { members.first { self.name($0).hasBytes(of: name) } }

    /// The text of a string; nil of what is none, or odd.
    func string(_ member: Member) -> String? {
        member.kind == .string ? Self.text(bytes, member.range) : nil
    }

    /// The object that a member is, if none of the texts in it is odd, and no two of its names are one for Swift.
    func object(_ member: Member) -> JSONMembers? {
        guard member.kind == .object, let inner = JSONMembers(bytes, member.range),
            inner.members.allSatisfy({ $0.kind != .string || !inner.isEscaped($0.range) || inner.string($0) != nil }),
            inner.members.allSatisfy({ inner.isPlain($0.name) }) || inner.columns.count == inner.members.count
        else { return nil }
        return inner
    }

    private func isPlain(_ name: Range<Int>) -> Bool {
        bytes[name].allSatisfy { $0 < 0x80 && $0 != UInt8(ascii: "\\") }
    }

    private func isEscaped(_ range: Range<Int>) -> Bool { bytes[range].contains(UInt8(ascii: "\\")) }

    /// The values of an object of ``object(_:)``.
    var columns: [String: ColumnValue] {
        var values: [String: ColumnValue] = [:]
        for item in members {
            values[name(item)] = string(item).map { .text($0) } ?? .json(String(decoding: raw(item), as: UTF8.self))
        }
        return values
    }

    /// The value as it is written.
    func raw(_ member: Member) -> ArraySlice<UInt8> { bytes[member.range] }

    /// A text as a string of JSON.
    static func quoted(_ text: String.UTF8View) -> [UInt8] {
        var out: [UInt8] = []
        quote(Array(text)[...], into: &out)
        return out
    }

    /// Appends UTF-8 as a string of JSON; what is none of it is repaired.
    static func quote(repairing text: ArraySlice<UInt8>, into out: inout [UInt8]) {
        guard (try? UTF8Span(validating: text.span)) == nil else { return quote(text, into: &out) }
        quote(Array(String(decoding: text, as: UTF8.self).utf8)[...], into: &out)
    }

    /// Appends UTF-8 as a string of JSON.
    static func quote(_ text: ArraySlice<UInt8>, into out: inout [UInt8]) {
        out.append(UInt8(ascii: "\""))
        var start = text.startIndex
        for place in text.indices {
            let byte = text[place]
            guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
            out += text[start..<place]
            start = place + 1
            switch byte {
            case UInt8(ascii: "\n"): out += Array("\\n".utf8)
            case UInt8(ascii: "\r"): out += Array("\\r".utf8)
            case UInt8(ascii: "\t"): out += Array("\\t".utf8)
            case 0..<0x20:
                let digits = Array("0123456789abcdef".utf8)
                out += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: out += [UInt8(ascii: "\\"), byte]
            }
        }
        out += text[start...]
        out.append(UInt8(ascii: "\""))
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
    private let end: Int
    private(set) var place: Int

    /// * `range`: of the text.
    init(_ bytes: [UInt8], _ range: Range<Int>) {
        (self.bytes, place, end) = (bytes, range.lowerBound, range.upperBound)
    }

    private var next: UInt8? { place < end ? bytes[place] : nil }

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
        let isThere = word.withUTF8Buffer { bytes[place..<end].starts(with: $0) }
        if isThere { place += word.utf8CodeUnitCount }
        return isThere
    }

    /// A string, whose escapes are right but for halves of characters.
    private mutating func string() -> Bool {
        guard take(UInt8(ascii: "\"")) else { return false }
        while true {
            // The text up to what means something.
            var place = place
            while place < end, case let byte = bytes[place], byte >= 0x20, byte != UInt8(ascii: "\""),
                byte != UInt8(ascii: "\\")
            {
                place += 1
            }
            self.place = place
            if take(UInt8(ascii: "\"")) { return true }
            guard take(UInt8(ascii: "\\")), let escaped = next else { return false }
            self.place += 1
            if escaped == UInt8(ascii: "u") {
                let digits = bytes[self.place..<min(self.place + 4, end)]
                guard digits.count == 4, digits.allSatisfy(Self.isHex) else { return false }
                self.place += 4
            } else if !"\"\\/bfnrt".utf8.contains(escaped) {
                return false
            }
        }
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
