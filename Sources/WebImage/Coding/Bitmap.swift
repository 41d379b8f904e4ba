/// A decoded image of one frame: what ``ImageCoder/encode(_:as:quality:)`` makes bytes of.
public struct Bitmap: Sendable, Equatable {
    /// Pixels in a row.
    public let width: Int
    /// Rows.
    public let height: Int
    /// Whether a pixel is red, green, blue and alpha, not premultiplied, and not red, green and blue alone.
    public let hasAlpha: Bool
    /// One byte for each colour, row after row without gaps, the topmost first.
    public let pixels: [UInt8]

    /// An image of its pixels.
    /// - Throws: `badImageData` where there are none, or `pixels` has not 3 bytes for each, or 4 with alpha.
    public init(width: Int, height: Int, hasAlpha: Bool, pixels: [UInt8]) throws(WebImageError) {
        let (area, overflows) = width.multipliedReportingOverflow(by: height)
        let (count, overflowsToo) = area.multipliedReportingOverflow(by: hasAlpha ? 4 : 3)
        guard width > 0, height > 0, !overflows, !overflowsToo, pixels.count == count else {
            throw WebImageError(
                .badImageData,
                "\(pixels.count) bytes are not \(width) x \(height) pixels \(hasAlpha ? "with" : "without") alpha")
        }
        self.width = width
        self.height = height
        self.hasAlpha = hasAlpha
        self.pixels = pixels
    }

    /// Red, green and blue alone: what is not opaque lies on white.
    var opaquePixels: [UInt8] {
        guard hasAlpha else { return pixels }
        return [UInt8](unsafeUninitializedCapacity: width * height * 3) { opaque, count in
            for pixel in 0..<width * height {
                let alpha = Int(pixels[4 * pixel + 3])
                for channel in 0..<3 {
                    let mixed = Int(pixels[4 * pixel + channel]) * alpha + 255 * (255 - alpha)
                    opaque[count] = UInt8((mixed + 127) / 255)
                    count += 1
                }
            }
        }
    }
}
