/// WebP files the generator does not write.
enum WebPSamples {
    /// A lossy image of 41 x 29 with four data partitions and four segments.
    static let lossy = HexSamples.bytes(
        """
        52494646000100005745425056503820f40000003008009d012a29001d003f117cb253ac27a422a56e618022096c60eb461621fc
        26409596aa8176c5b7d15592a7e40019c513614e8d320de2449443c4fa9e3bc79d0f333658212f0e400000fefa721a83f885f3f6
        7685471f4eefdab2ab25cae7bad4fa351dae29e04b1145797181d4b57e39bc455e0b3a5546600c023388636cff892bed001a1bfd
        2e0f8f472b9ffcce01f5f4efe50f73085e06a05544dd6cff6e42123eb86c68dffdeba513fac45fe3fc7cab26bfd37a838fa93f75
        def942a120ce88c676ac15795ae89535b870066a38fd1ed8b6e4106ceca13fb2c3a6b42ddff509e43f2a6f51bf846e03b8544f07
        c4000000
        """)

    /// The image chunk of a simple lossless file twice, as an animation.
    static func animation(of still: [UInt8]) -> [UInt8] {
        let canvas: [UInt8] = [UInt8(Sample.width - 1), 0, 0, UInt8(Sample.height - 1), 0, 0]
        let frame = chunk("ANMF", [0, 0, 0, 0, 0, 0] + canvas + [100, 0, 0, 0] + still[12...])
        let body = chunk("VP8X", [0x02, 0, 0, 0] + canvas) + chunk("ANIM", [0, 0, 0, 0, 0, 0]) + frame + frame
        return riff(body)
    }

    static func riff(_ body: [UInt8]) -> [UInt8] { Array("RIFF".utf8) + length(body.count + 4) + "WEBP".utf8 + body }

    static func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        Array(name.utf8) + length(data.count) + data + [UInt8](repeating: 0, count: data.count & 1)
    }

    private static func length(_ count: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: count >> (8 * $0)) } }

    /// A lossless image of one color with a group of prefix codes of its own for each block of 4 x 4 pixels; the side is at most 1024.
    static func manyCodes(side: Int) -> [UInt8] {
        var bits = Bits()
        bits.put(0x2F, 8)
        bits.put(side - 1, 14)
        bits.put(side - 1, 14)
        // No alpha, version 0, no transform, no color cache; groups for blocks of 4, in an image without a color cache.
        bits.put(1 << 6, 11)
        // Its green and red have 256 values of eight bits; the lengths are coded as 8, and for 24 more of green as 0.
        for others in [24, 0] {
            bits.put(0, 1)
            bits.put(12 - 4, 4)
            for length in [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8] {
                bits.put(length == 8 || (length == 0 && others > 0) ? 1 : 0, 3)
            }
            bits.put(0, 1)
            if others > 0 { for value in 0..<256 + others { bits.put(value < 256 ? 1 : 0, 1) } }
        }
        for _ in 0..<3 { bits.put(1, 4) }
        for block in 0..<side * side / 16 {
            bits.put(Bits.reversed(block & 255), 8)
            bits.put(Bits.reversed(block >> 8), 8)
        }
        // Of each group, five codes of one symbol, which is 0.
        for _ in 0..<side * side / 16 * 5 { bits.put(1, 4) }
        for _ in 0..<9 { bits.put(0, 8) }
        return riff(chunk("VP8L", bits.bytes))
    }

    /// Numbers of so many bits, the lowest one first.
    private struct Bits {
        private(set) var bytes: [UInt8] = []
        private var held = 0
        private var count = 0

        mutating func put(_ value: Int, _ width: Int) {
            held |= value << count
            count += width
            while count >= 8 {
                bytes.append(UInt8(truncatingIfNeeded: held))
                held >>= 8
                count -= 8
            }
        }

        static func reversed(_ value: Int) -> Int { (0..<8).reduce(0) { $0 | (value >> $1 & 1) << (7 - $1) } }
    }
}
