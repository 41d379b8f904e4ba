/// The CRC-32 of a job's body (ISO 3309, the polynomial of zlib and PNG): tells a cut or foreign element of the list from a job.
enum CRC32 {
    /// Eight tables: the second says what a byte does that is followed by one more, and so on, so that eight bytes go at once. Byte by
    /// byte it was a quarter of what feeding a list costs.
    private static let tables: [UInt32] = {
        var tables: [UInt32] = []
        for index in 0..<256 {
            var value = UInt32(index)
            for _ in 0..<8 { value = value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
            tables.append(value)
        }
        for index in 256..<2048 {
            let last = tables[index - 256]
            tables.append((last >> 8) ^ tables[Int(last & 255)])
        }
        return tables
    }()

    /// Eight lower-case hex digits.
    static func hex(of bytes: some Sequence<UInt8>) -> String {
        let value: UInt32 =
            bytes.withContiguousStorageIfAvailable { crc(of: UnsafeRawBufferPointer($0)) }
            ?? Array(bytes).withUnsafeBytes { crc(of: $0) }
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }

    private static func crc(of bytes: UnsafeRawBufferPointer) -> UInt32 {
        tables.withUnsafeBufferPointer { tables in
            var crc: UInt32 = 0xFFFF_FFFF
            var at = 0
            while at + 8 <= bytes.count {
                let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)) ^ UInt64(crc)
                crc = 0
                for place in 0..<8 {
                    let byte = Int(truncatingIfNeeded: word >> (8 * UInt64(place))) & 255
                    crc ^= tables[(7 - place) * 256 + byte]
                }
                at += 8
            }
            while at < bytes.count {
                crc = tables[Int(UInt8(truncatingIfNeeded: crc) ^ bytes[at])] ^ (crc >> 8)
                at += 1
            }
            return ~crc
        }
    }
}
