/// Pixels that compress like a photograph: an interpolated coarse grid of colours, plus a little noise.
struct PhotoLikePixels {
    private static let cell = 32
    private static let noise = 12

    private let width: Int
    private let height: Int
    private var random: SplitMix64

    init(seed: UInt64, width: Int, height: Int) {
        self.width = width
        self.height = height
        random = SplitMix64(state: seed)
    }

    static let palette: [UInt8] = (0...255).flatMap { (index: UInt8) -> [UInt8] in
        let red = index >> 5, green = index >> 2 & 7, blue = index & 3
        return [red * 36, green * 36, blue * 85]
    }

    /// Rows without padding, one byte per sample. In pointers, and operators that wrap: every image of the tests comes from here, without
    /// optimization.
    func samples(channels: Int) -> [UInt8] {
        var random = random
        let (cell, noise) = (Self.cell, Self.noise)
        let columns = width / cell + 2, rows = height / cell + 2
        let grid = (0..<columns * rows * channels).map { _ in Int(truncatingIfNeeded: random.next() & 0xFF) }
        // Colours between two rows of the grid.
        var line = [Int](repeating: 0, count: columns * channels)
        return [UInt8](unsafeUninitializedCapacity: width * height * channels) { samples, count in
            count = width * height * channels
            guard count > 0, var sample = samples.baseAddress else { return }
            line.withUnsafeMutableBufferPointer { line in
                guard let between = line.baseAddress else { return }
                var y = 0
                while y < height {
                    let (row, down) = (y / cell, y % cell)
                    for at in 0..<columns * channels {
                        let above = row * columns * channels + at
                        between[at] = grid[above] * (cell - down) + grid[above + columns * channels] * down
                    }
                    var x = 0
                    while x < width {
                        let (column, right) = (x / cell, x % cell)
                        // One random number serves all channels of a pixel, 16 bits each.
                        var bits = random.next()
                        var left = between + column &* channels
                        let end = left + channels
                        while left < end {
                            let value = (left[0] &* (cell &- right) &+ left[channels] &* right) / (cell &* cell)
                            let noisy = value &+ (Int(truncatingIfNeeded: bits & 0xFFFF) &* noise) / 65_536 &- noise / 2
                            bits = bits &>> 16 | bits &<< 48
                            sample[0] = noisy < 0 ? 0 : noisy > 255 ? 255 : UInt8(truncatingIfNeeded: noisy)
                            sample += 1
                            left += 1
                        }
                        x &+= 1
                    }
                    y &+= 1
                }
            }
        }
    }
}

/// The generator of Steele, Lea and Flood: one state word, the same sequence on every platform.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    var state: UInt64

    package init(state: UInt64) { self.state = state }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed &>> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed &>> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed &>> 31)
    }
}
