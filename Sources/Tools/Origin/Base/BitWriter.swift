/// Packs codes into bytes starting with the lowest bit, as GIF and VP8L require.
struct BitWriter {
    private(set) var bytes: [UInt8] = []
    private var pending: UInt64 = 0
    private var count = 0

    mutating func write(_ value: Int, bits: Int) {
        pending |= UInt64(value) << UInt64(count)
        count += bits
        while count >= 8 {
            bytes.append(UInt8(truncatingIfNeeded: pending))
            pending >>= 8
            count -= 8
        }
    }

    func finished() -> [UInt8] {
        count == 0 ? bytes : bytes + [UInt8(truncatingIfNeeded: pending)]
    }
}

extension [UInt8] {
    mutating func appendLittleEndian(_ value: Int, bytes: Int) {
        for index in 0..<bytes { append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
    }
}
