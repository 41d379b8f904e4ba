internal import Glibc

/// A fingerprint of what an image looks like, as imagehash's `phash` and COYO-700M have it: 64 bits, few of which differ between copies in
/// another size, quality or format. The image becomes 32 x 32 grey pixels; of their discrete cosine transform the 8 x 8 lowest frequencies are
/// a bit each, from the top left, row by row: whether it is above their median.
package struct PerceptualHash: Sendable, Equatable {
    private static let side = 32, kept = 8
    /// Sides of a JPEG that is decoded at 1/2, 1/4 or 1/8 of its size: fewer would be little cheaper, since its bits are read in any case, and the
    /// hash less that of all pixels.
    private static let leastSide = 256
    /// Weights of a frequency, by place.
    private static let cosines: [[Double]] = (0..<kept).map { frequency in
        (0..<side).map { place in
            let halves = Double(frequency * (2 * place + 1))
            return cos(Double.pi * halves / Double(2 * side))
        }
    }

    package let bits: UInt64

    /// Of an image as its file has it: not turned upright, without alpha, of an animation the first frame. Blocks as
    /// ``ImageCoder/decode(_:options:)``.
    /// - Throws: as that.
    package init(of bytes: UnsafeRawBufferPointer, by coder: ImageCoder) throws(WebImageError) {
        var options = ImageDecodeOptions()
        options.appliesOrientation = false
        options.minimumSize = PixelSize(width: Self.leastSide, height: Self.leastSide)
        let image = try coder.decode(bytes, options: options)
        let small = try Self.grey(image).scaled(to: PixelSize(width: Self.side, height: Self.side)).pixels
        self.init(grey: (0..<Self.side * Self.side).map { Double(small[3 * $0]) })
    }

    /// * `grey`: 32 rows of 32 pixels.
    private init(grey: [Double]) {
        let (side, kept) = (Self.side, Self.kept)
        // A function: one expression of nested closures takes the type checker seconds.
        func sum(_ weights: [Double], _ sample: (Int) -> Double) -> Double {
            var sum = 0.0
            for place in 0..<side { sum += weights[place] * sample(place) }
            return sum
        }
        let rows: [[Double]] = (0..<side).map { y in
            Self.cosines.map { weights in sum(weights) { grey[side * y + $0] } }
        }
        // What would be equal but for the last bits of a sum is equal.
        let values: [Double] = Self.cosines.flatMap { weights in
            (0..<kept).map { x in (sum(weights) { rows[$0][x] } * 1024).rounded() }
        }
        let sorted = values.sorted()
        let median = (sorted[sorted.count / 2 - 1] + sorted[sorted.count / 2]) / 2
        bits = values.reduce(0) { $0 << 1 | ($1 > median ? 1 : 0) }
    }

    /// The luma of ITU-R 601 in each of three channels, whatever alpha is.
    private static func grey(_ image: Bitmap) -> Bitmap {
        let (count, channels) = (image.width * image.height, image.channels)
        let made = [UInt8](unsafeUninitializedCapacity: 3 * count) { grey, written in
            image.pixels.withUnsafeBufferPointer { pixels in
                for pixel in 0..<count {
                    let place = channels * pixel
                    let red = Int(pixels[place]), green = Int(pixels[place + 1]), blue = Int(pixels[place + 2])
                    let luma = UInt8((19_595 * red + 38_470 * green + 7_471 * blue + 32_768) >> 16)
                    for channel in 0..<3 { grey[3 * pixel + channel] = luma }
                }
            }
            written = 3 * count
        }
        return image.remade(PixelSize(width: image.width, height: image.height), hasAlpha: false, pixels: made)
    }

    /// 16 hexadecimal digits.
    package var hex: String {
        let digits = String(bits, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
