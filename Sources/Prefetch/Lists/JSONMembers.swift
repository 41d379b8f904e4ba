internal import Glibc
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
    /// Of the line that they are of.
    let bytes: [UInt8]

    init?(_ line: [UInt8]) {
        guard line.count < Int(Int32.max), (try? UTF8Span(validating: line.span)) != nil else { return nil }
        self.init(line, line.indices)
    }

    /// * `range`: of the object in a line that is UTF-8.
    private init?(_ line: [UInt8], _ range: Range<Int>) {
        guard let found = line.withUnsafeBufferPointer({ Self.members(of: $0, range) }) else { return nil }
        (bytes, members) = (line, found)
        guard hasSoundNames else { return nil }
    }

    private static func members(of bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) -> [Member]? {
        var scanner = JSONScanner(bytes, range)
        var members: [Member] = []
        members.reserveCapacity(8)
        let isObject = scanner.object { scanner, name in
            scanner.skipBlanks()
            let start = scanner.place
            guard let kind = scanner.value(depth: deepest) else { return false }
            members.append(Member(name: name, range: start..<scanner.place, kind: kind))
            return true
        }
        scanner.skipBlanks()
        return isObject && scanner.place == range.upperBound ? members : nil
    }

    /// Whether each name is a text, and is there once.
    private var hasSoundNames: Bool {
        if members.count > 16 || members.contains(where: { isEscaped($0.name) }) {
            let names = Set(members.compactMap { Self.text(bytes, $0.name).map { ByteText($0) } })
            return names.count == members.count
        }
        return bytes.withUnsafeBytes { bytes in
            members.indices.allSatisfy { place in
                let name = UnsafeRawBufferPointer(rebasing: bytes[members[place].name])
                return !members[..<place].contains { Self.same(UnsafeRawBufferPointer(rebasing: bytes[$0.name]), name) }
            }
        }
    }

    private static func same(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
        guard left.count == right.count else { return false }
        guard let first = left.baseAddress, let second = right.baseAddress else { return true }
        return memcmp(first, second, left.count) == 0
    }

    /// The names of a line in their order, and of which kinds the values are: those of all lines, in most lists.
    struct Shape {
        fileprivate let members: [(name: Range<Int>, kind: Kind)]
        fileprivate let names: [UInt8]
    }

    var shape: Shape {
        var (shapes, names): ([(Range<Int>, Kind)], [UInt8]) = ([], [])
        for member in members {
            shapes.append((names.count..<(names.count + member.name.count), member.kind))
            names += bytes[member.name]
        }
        return Shape(members: shapes, names: names)
    }

    func has(_ shape: Shape) -> Bool {
        guard members.count == shape.members.count else { return false }
        return bytes.withUnsafeBytes { bytes in
            shape.names.withUnsafeBytes { names in
                zip(members, shape.members).allSatisfy { member, other in
                    member.kind == other.kind
                        && Self.same(
                            UnsafeRawBufferPointer(rebasing: bytes[member.name]),
                            UnsafeRawBufferPointer(rebasing: names[other.name]))
                }
            }
        }
    }

    func name(_ member: Member) -> String { Self.text(bytes, member.name) ?? "" }

    var names: [String] { members.map { name($0) } }

    /// Appends a member as it is written.
    func write(_ member: Member, to out: inout [UInt8]) {
        bytes.withUnsafeBufferPointer { bytes in
            out += UnsafeBufferPointer(rebasing: bytes[member.name])
            out.append(UInt8(ascii: ":"))
        }
        writeValue(member, to: &out)
    }

    func writeValue(_ member: Member, to out: inout [UInt8]) {
        bytes.withUnsafeBufferPointer { out += UnsafeBufferPointer(rebasing: $0[member.range]) }
    }

    /// Whether a member is called so.
    func isCalled(_ name: StaticString, _ member: Member) -> Bool {
        name.withUTF8Buffer { isCalled(UnsafeRawBufferPointer($0), member) }
    }

    /// * `name`: UTF-8.
    func isCalled(_ name: [UInt8], _ member: Member) -> Bool { name.withUnsafeBytes { isCalled($0, member) } }

    private func isCalled(_ name: UnsafeRawBufferPointer, _ member: Member) -> Bool {
        guard !isEscaped(member.name) else { return self.name(member).utf8.elementsEqual(name) }
        return bytes.withUnsafeBytes {
            Self.same(
                UnsafeRawBufferPointer(rebasing: $0[(member.name.lowerBound + 1)..<(member.name.upperBound - 1)]), name)
        }
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

    /// Whether an object has a member of a name, which is UTF-8.
    func hasMember(_ name: [UInt8], in object: Member) -> Bool {
        bytes.withUnsafeBufferPointer { bytes in
            var scanner = JSONScanner(bytes, object.range)
            var isFound = false
            _ = scanner.object { scanner, found in
                isFound = isFound || isCalled(name, Member(name: found, range: found, kind: .string))
                return !isFound && scanner.value(depth: Self.deepest) != nil
            }
            return isFound
        }
    }

    /// Whether an escape in a value may be half a character.
    func mayHaveHalves(_ member: Member) -> Bool {
        bytes.withUnsafeBufferPointer { bytes in
            let text = UnsafeBufferPointer(rebasing: bytes[member.range])
            let escape = UInt8(ascii: "\\")
            var place = text.place(of: escape, or: escape, from: 0)
            while place + 2 < text.count {
                if text[place + 1] == UInt8(ascii: "u"), text[place + 2] | 0x20 == UInt8(ascii: "d") { return true }
                place = text.place(of: escape, or: escape, from: place + 2)
            }
            return false
        }
    }

    private func isPlain(_ name: Range<Int>) -> Bool {
        bytes.withUnsafeBufferPointer { bytes in
            name.allSatisfy { bytes[$0] < 0x80 && bytes[$0] != UInt8(ascii: "\\") }
        }
    }

    private func isEscaped(_ range: Range<Int>) -> Bool { bytes[range].place(of: UInt8(ascii: "\\")) != nil }

    /// The values of an object of ``object(_:)``.
    var columns: [String: ColumnValue] {
        var values: [String: ColumnValue] = [:]
        for item in members {
            values[name(item)] =
                string(item).map { .text($0) } ?? .json(String(decoding: bytes[item.range], as: UTF8.self))
        }
        return values
    }

    /// A text as a string of JSON.
    static func quoted(_ text: String.UTF8View) -> [UInt8] {
        var out: [UInt8] = []
        quote(Array(text)[...], into: &out)
        return out
    }

    /// Appends UTF-8 as a string of JSON; what is none of it is repaired.
    static func quote(repairing text: UnsafeBufferPointer<UInt8>, into out: inout [UInt8]) {
        guard (try? UTF8Span(validating: text.span)) == nil else { return quote(text, into: &out) }
        quote(Array(String(decoding: text, as: UTF8.self).utf8)[...], into: &out)
    }

    /// Appends UTF-8 as a string of JSON.
    static func quote(_ text: ArraySlice<UInt8>, into out: inout [UInt8]) {
        text.withUnsafeBufferPointer { quote($0, into: &out) }
    }

    private static func quote(_ text: UnsafeBufferPointer<UInt8>, into out: inout [UInt8]) {
        out.append(UInt8(ascii: "\""))
        var start = 0
        while case let place = text.endOfText(from: start, to: text.count), place < text.count {
            let byte = text[place]
            out += UnsafeBufferPointer(rebasing: text[start..<place])
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
        out += UnsafeBufferPointer(rebasing: text[start...])
        out.append(UInt8(ascii: "\""))
    }

    /// What is between the quotes of a range.
    private static func text(_ bytes: [UInt8], _ range: Range<Int>) -> String? {
        let inner = bytes[(range.lowerBound + 1)..<(range.upperBound - 1)]
        guard let first = inner.place(of: UInt8(ascii: "\\")) else {
            return inner.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
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
