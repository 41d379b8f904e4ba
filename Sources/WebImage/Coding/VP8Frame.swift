/// The headers of a VP8 key frame (RFC 6386): size and data partitions.
struct VP8Frame {
    let size: PixelSize
    private let firstPartition: Int

    /// Section 9.1: three bytes of frame tag, a start code, width and height in 14 bits each plus 2 bits of scaling.
    static func header(_ data: inout ByteReader, chunkLength: Int) throws(ImageFault) -> VP8Frame {
        let tag = try data.littleEndian24()
        let startCode = try data.littleEndian24()
        let size = PixelSize(width: try data.littleEndian16() & 0x3FFF, height: try data.littleEndian16() & 0x3FFF)
        let isKeyFrame = tag & 1 == 0, version = tag >> 1 & 7, isShown = tag >> 4 & 1 == 1
        guard isKeyFrame, version <= 3, isShown, startCode == 0x2A019D else {
            throw ImageFault(.damaged, "WebP with an invalid VP8 frame header")
        }
        let firstPartition = tag >> 5
        if firstPartition > chunkLength - 10 {
            throw ImageFault(.damaged, "WebP whose VP8 partition does not fit its chunk")
        }
        return VP8Frame(size: size, firstPartition: firstPartition)
    }

    /// Section 9.5: the first partition contains the number of further ones; their lengths follow it, three bytes each but the last.
    func checkPartitions(_ data: inout ByteReader) throws(ImageFault) {
        let count = Self.partitionCount(try data.part(firstPartition))
        var lengths = try data.part(3 * (count - 1))
        for _ in 1..<count { try data.skip(try lengths.littleEndian24()) }
        if data.left == 0 { throw ImageFault(.damaged, "WebP with an empty VP8 partition") }
    }

    /// Section 19.2 up to `log2_nbr_of_dct_partitions`.
    private static func partitionCount(_ partition: ByteReader) -> Int {
        var bits = BoolDecoder(partition)
        _ = bits.read(2)
        if bits.read(1) == 1 { skipSegmentation(&bits) }
        _ = bits.read(10)
        if bits.read(1) == 1, bits.read(1) == 1 {
            for _ in 0..<8 where bits.read(1) == 1 { _ = bits.read(7) }
        }
        return 1 << bits.read(2)
    }

    private static func skipSegmentation(_ bits: inout BoolDecoder) {
        let updatesMap = bits.read(1) == 1
        if bits.read(1) == 1 {
            _ = bits.read(1)
            for _ in 0..<4 where bits.read(1) == 1 { _ = bits.read(8) }
            for _ in 0..<4 where bits.read(1) == 1 { _ = bits.read(7) }
        }
        if updatesMap {
            for _ in 0..<3 where bits.read(1) == 1 { _ = bits.read(8) }
        }
    }
}

/// The arithmetic decoder of RFC 6386 section 7.3 for literals (bits of probability one half). Reads zeros past the end.
private struct BoolDecoder {
    private var reader: ByteReader
    private var value = 0
    private var range = 255
    private var shifts = 0

    init(_ reader: ByteReader) {
        self.reader = reader
        value = nextByte() << 8
        value |= nextByte()
    }

    mutating func read(_ count: Int) -> Int {
        var result = 0
        for _ in 0..<count { result = result << 1 | readBit() }
        return result
    }

    private mutating func readBit() -> Int {
        let split = 1 + ((range - 1) * 128) >> 8
        let bit = value >= split << 8 ? 1 : 0
        if bit == 1 {
            range -= split
            value -= split << 8
        } else {
            range = split
        }
        while range < 128 {
            value <<= 1
            range <<= 1
            shifts += 1
            if shifts == 8 {
                shifts = 0
                value |= nextByte()
            }
        }
        return bit
    }

    private mutating func nextByte() -> Int { reader.left > 0 ? (try? reader.byte()) ?? 0 : 0 }
}
