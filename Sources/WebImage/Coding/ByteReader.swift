/// Reads bytes sequentially. Reading past the end throws `incomplete`; in a complete ``part(_:)`` it throws `damaged`.
struct ByteReader {
    private let bytes: UnsafeRawBufferPointer
    private let format: String
    private let isPart: Bool
    private(set) var offset = 0

    init(_ bytes: UnsafeRawBufferPointer, format: String, isPart: Bool = false) {
        self.bytes = bytes
        self.format = format
        self.isPart = isPart
    }

    /// The bytes that are left.
    var rest: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[offset...]) }

    var left: Int { bytes.count - offset }

    private func need(_ count: Int) throws(ImageFault) {
        if left >= count { return }
        throw isPart
            ? ImageFault(.damaged, "\(format) with a part shorter than its content")
            : ImageFault(.incomplete, "\(format) ends inside the image")
    }

    mutating func skip(_ count: Int) throws(ImageFault) {
        try need(count)
        offset += count
    }

    mutating func byte() throws(ImageFault) -> Int {
        try need(1)
        defer { offset += 1 }
        return Int(bytes[offset])
    }

    mutating func littleEndian16() throws(ImageFault) -> Int {
        try need(2)
        defer { offset += 2 }
        return Int(bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self).littleEndian)
    }

    mutating func littleEndian24() throws(ImageFault) -> Int {
        let low = try littleEndian16()
        return try byte() << 16 | low
    }

    mutating func littleEndian32() throws(ImageFault) -> Int {
        try need(4)
        defer { offset += 4 }
        return Int(bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self).littleEndian)
    }

    /// A four-byte name as a big-endian number.
    mutating func name() throws(ImageFault) -> UInt32 {
        UInt32(truncatingIfNeeded: try littleEndian32()).byteSwapped
    }

    mutating func part(_ count: Int) throws(ImageFault) -> ByteReader {
        try need(count)
        defer { offset += count }
        return ByteReader(
            UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count]), format: format, isPart: true)
    }
}
