internal import CZlib

/// The CRC-32 of a job's body (ISO 3309), by zlib: detects cut or foreign elements of the list.
enum CRC32 {
    /// Eight lower-case hex digits.
    static func hex(of bytes: some Sequence<UInt8>) -> String {
        let value =
            bytes.withContiguousStorageIfAvailable { crc(of: $0) }
            ?? Array(bytes).withUnsafeBufferPointer { crc(of: $0) }
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }

    private static func crc(of bytes: UnsafeBufferPointer<UInt8>) -> UInt {
        crc32_z(0, bytes.baseAddress, bytes.count)
    }
}
