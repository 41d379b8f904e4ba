/// A SHA-256 digest.
public struct Digest: Sendable, Hashable, CustomStringConvertible {
    private let storage: SIMD32<UInt8>

    /// A digest of its 32 bytes; nil for any other number of them.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 32 else { return nil }
        storage = SIMD32(bytes)
    }

    /// A digest of its 64 hexadecimal digits, in either case; nil for anything else.
    public init?(hex: some StringProtocol) {
        let digits = Array(hex.utf8)
        guard digits.count == 64 else { return nil }
        var bytes = SIMD32<UInt8>()
        for index in 0..<32 {
            guard let high = Self.value(digits[2 * index]), let low = Self.value(digits[2 * index + 1]) else {
                return nil
            }
            bytes[index] = high << 4 | low
        }
        storage = bytes
    }

    /// The 32 bytes.
    public var bytes: [UInt8] { (0..<32).map { storage[$0] } }

    /// 64 lower-case hexadecimal digits.
    public var hex: String { Self.hex((0..<32).lazy.map { storage[$0] }) }

    /// The same as ``hex``.
    public var description: String { hex }

    subscript(index: Int) -> UInt8 { storage[index] }

    /// Lower-case hexadecimal digits of any bytes.
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

    static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
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
