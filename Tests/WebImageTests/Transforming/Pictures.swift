@testable import WebImage

/// Pixels for tests.
enum Pictures {
    /// Random pixels; every second one is transparent to some degree if `hasAlpha`.
    static func noise(_ width: Int, _ height: Int, hasAlpha: Bool, seed: UInt64) throws -> Bitmap {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        return try drawn(width, height, hasAlpha: hasAlpha) { _, _ in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            let bytes = (0..<4).map { UInt8(truncatingIfNeeded: state >> (8 * $0)) }
            return [bytes[0], bytes[1], bytes[2], state >> 40 & 1 == 0 ? 255 : bytes[3]]
        }
    }

    /// Each pixel tells where it was.
    static func places(_ width: Int, _ height: Int, hasAlpha: Bool = false) throws -> Bitmap {
        try drawn(width, height, hasAlpha: hasAlpha) { x, y in
            [UInt8(truncatingIfNeeded: x), UInt8(truncatingIfNeeded: y), 7, UInt8(truncatingIfNeeded: 255 - x - y)]
        }
    }

    static func drawn(
        _ width: Int, _ height: Int, hasAlpha: Bool = false, _ color: (_ x: Int, _ y: Int) -> [UInt8]
    ) throws -> Bitmap {
        var pixels: [UInt8] = []
        for y in 0..<height { for x in 0..<width { pixels += color(x, y).prefix(hasAlpha ? 4 : 3) } }
        return try Bitmap(width: width, height: height, hasAlpha: hasAlpha, pixels: pixels)
    }
}

extension Bitmap {
    func pixel(_ x: Int, _ y: Int) -> [UInt8] {
        let channels = hasAlpha ? 4 : 3
        let start = (y * width + x) * channels
        return Array(pixels[start..<start + channels])
    }

    var size: PixelSize { PixelSize(width: width, height: height) }

    /// The largest difference of two values.
    func difference(from other: Bitmap) -> Int {
        guard size == other.size, hasAlpha == other.hasAlpha else { return 256 }
        return zip(pixels, other.pixels).map { abs(Int($0) - Int($1)) }.max() ?? 0
    }
}
