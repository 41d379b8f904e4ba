/// A decoded single-frame image, the input of ``ImageCoder/encode(_:as:quality:)``.
public struct Bitmap: Sendable, Equatable {
    /// In pixels.
    public let width: Int
    /// In pixels.
    public let height: Int
    /// Whether pixels are RGBA, not premultiplied, instead of RGB.
    public let hasAlpha: Bool
    /// One byte per channel, rows without padding, top row first.
    public let pixels: [UInt8]

    /// Creates an image from its pixels.
    /// - Throws: `badImageData` if it is empty, or `pixels` does not have 3 bytes per pixel (4 with alpha).
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

    /// RGB, with transparent pixels blended onto white.
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
