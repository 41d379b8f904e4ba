/// The CRC-32 of a job's body (ISO 3309, the polynomial of zlib and PNG): tells a cut or foreign element of the list from a job.
enum CRC32 {
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
    }

    /// Eight lower-case hex digits.
    static func hex(of bytes: some Sequence<UInt8>) -> String {
        let table = table
        var crc: UInt32 = 0xFFFF_FFFF
        for byte in bytes { crc = table[Int((crc ^ UInt32(byte)) & 0xFF)] ^ (crc >> 8) }
        let digits = String(~crc, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}
