/// Walks over a text of JSON, and checks its grammar. For as long as its bytes are there.
struct JSONScanner {
    private let bytes: UnsafeBufferPointer<UInt8>
    private let end: Int
    private(set) var place: Int

    /// * `range`: of the text.
    init(_ bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
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
            place = bytes.endOfText(from: place, to: end)
            if take(UInt8(ascii: "\"")) { return true }
            guard take(UInt8(ascii: "\\")), let escaped = next else { return false }
            place += 1
            if escaped == UInt8(ascii: "u") {
                let digits = bytes[place..<min(place + 4, end)]
                guard digits.count == 4, digits.allSatisfy(Self.isHex) else { return false }
                place += 4
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
