/// A SHA-256 digest.
public struct Digest: Sendable, Hashable, CustomStringConvertible {
    /// Big endian. Not SIMD32: async frames are not 32-byte aligned (Swift 6.3 aborts with "freed pointer was not the last allocation").
    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// A digest from 32 bytes; nil for any other number.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 32 else { return nil }
        var rest = bytes.makeIterator()
        func word() -> UInt64 { (0..<8).reduce(0) { value, _ in value << 8 | UInt64(rest.next() ?? 0) } }
        words = (word(), word(), word(), word())
    }

    init(_ bytes: UnsafeMutableBufferPointer<UInt8>) {
        precondition(bytes.count == 32)
        let bytes = UnsafeRawBufferPointer(bytes)
        func word(_ index: Int) -> UInt64 {
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
        }
        words = (word(0), word(1), word(2), word(3))
    }

    func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let bytes = (words.0.bigEndian, words.1.bigEndian, words.2.bigEndian, words.3.bigEndian)
        return Swift.withUnsafeBytes(of: bytes, body)
    }

    /// A digest from 64 hexadecimal digits, in either case; nil for anything else.
    public init?(hex: some StringProtocol) {
        let digits = Array(hex.utf8)
        guard digits.count == 64 else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: 64, by: 2) {
            guard let high = Self.value(digits[index]), let low = Self.value(digits[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        self.init(bytes)
    }

    /// The 32 bytes.
    public var bytes: [UInt8] { (0..<32).map { self[$0] } }

    /// 64 lower-case hexadecimal digits.
    public var hex: String { Self.hex((0..<32).lazy.map { self[$0] }) }

    /// Same as ``hex``.
    public var description: String { hex }

    subscript(index: Int) -> UInt8 {
        let word =
            switch index >> 3 {
            case 0: words.0
            case 1: words.1
            case 2: words.2
            default: words.3
            }
        return UInt8(truncatingIfNeeded: word >> (56 - 8 * (index & 7)))
    }

    /// Compares all bytes.
    public static func == (lhs: Digest, rhs: Digest) -> Bool { lhs.words == rhs.words }

    /// Hashes all bytes.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(words.3)
    }

    package static func hex(_ bytes: some Collection<UInt8>) -> String {
        String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
            var index = 0
            for byte in bytes {
                text[index] = digit(byte >> 4)
                text[index + 1] = digit(byte & 15)
                index += 2
            }
            return index
        }
    }

    @inline(__always)
    static func digit(_ value: UInt8) -> UInt8 {
        value &+ UInt8(ascii: "0") &+ (value > 9 ? UInt8(ascii: "a") - UInt8(ascii: "9") - 1 : 0)
    }

    static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
