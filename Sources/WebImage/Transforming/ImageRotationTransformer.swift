internal import Glibc

/// Turns an image about its centre (SDImageRotationTransformer). Quarter turns are exact; other angles are interpolated (bicubic), and what
/// the image does not cover becomes transparent.
public struct ImageRotationTransformer: ImageTransformer {
    /// Counterclockwise, in radians.
    public let angle: Double
    /// Whether the result is as large as the turned image; otherwise it has the image's size, and corners are cut off.
    public let fitsSize: Bool

    /// Creates a transformer.
    /// - Parameters:
    ///   - angle: counterclockwise, in radians; -1,000 to 1,000.
    ///   - fitsSize: whether the result is as large as the turned image.
    /// - Throws: `invalidConfiguration` for an angle out of range.
    public init(angle: Double, fitsSize: Bool) throws(WebImageError) {
        guard abs(angle) <= 1000 else {
            throw WebImageError(.invalidConfiguration, "an image is turned by -1,000 to 1,000 radians, not by \(angle)")
        }
        (self.angle, self.fitsSize) = (angle, fitsSize)
    }

    /// Such as `ImageRotationTransformer(0.785398,1)`: angle, fitsSize.
    public var transformerKey: String {
        "ImageRotationTransformer(\(KeyNumber.text(angle)),\(KeyNumber.text(fitsSize)))"
    }

    /// Turns the image.
    public func transformedImage(with image: Bitmap, for key: String) throws(WebImageError) -> Bitmap {
        let image = image.upright
        let turns = angle / (.pi / 2)
        // Angles of a key's precision are quarter turns too.
        guard abs(turns - turns.rounded()) < 1e-6 else { return interpolated(image) }
        let quarters = ((Int(turns.rounded()) % 4) + 4) % 4
        var grid = PixelGrid(image)
        grid.turn(quarters)
        let turned = grid.image()
        guard !fitsSize, turned.width != image.width else { return turned }
        let canvas = PixelCanvas(
            size: PixelSize(width: image.width, height: image.height), hasAlpha: true, color: .clear)
        let offset = (image.width - turned.width) / 2
        return canvas.drawing(turned, x: offset, y: -offset)
    }

    private func interpolated(_ image: Bitmap) -> Bitmap {
        let (sine, cosine) = (sin(angle), cos(angle))
        let (width, height) = (Double(image.width), Double(image.height))
        var size = PixelSize(width: image.width, height: image.height)
        if fitsSize {
            size.width = max(1, Int((abs(width * cosine) + abs(height * sine) - 1e-6).rounded(.up)))
            size.height = max(1, Int((abs(width * sine) + abs(height * cosine) - 1e-6).rounded(.up)))
        }
        let field = PremultipliedField(image)
        let pixels = [UInt8](unsafeUninitializedCapacity: size.width * size.height * 4) { result, count in
            for row in 0..<size.height {
                let y = Double(row) + 0.5 - Double(size.height) / 2
                for column in 0..<size.width {
                    let x = Double(column) + 0.5 - Double(size.width) / 2
                    let pixel = field.pixel(
                        x: x * cosine - y * sine + width / 2, y: x * sine + y * cosine + height / 2)
                    for channel in 0..<4 { result[count + channel] = pixel[channel] }
                    count += 4
                }
            }
        }
        return image.remade(size, hasAlpha: true, pixels: pixels)
    }
}

/// An image as a continuous function, transparent outside.
private struct PremultipliedField {
    private let image: Bitmap
    private let channels: Int

    init(_ image: Bitmap) {
        self.image = image
        channels = image.hasAlpha ? 4 : 3
    }

    /// The colour at a point, not premultiplied: bicubic (Catmull-Rom), weighted by alpha.
    /// * `x`, `y`: in pixels from the top left corner.
    func pixel(x: Double, y: Double) -> SIMD4<UInt8> {
        let left = (x - 0.5).rounded(.down)
        let top = (y - 0.5).rounded(.down)
        guard left >= -3, top >= -3, left < Double(image.width) + 2, top < Double(image.height) + 2 else {
            return .zero
        }
        let across = Self.weights(Float(x - 0.5 - left))
        let down = Self.weights(Float(y - 0.5 - top))
        var sum = SIMD4<Float>.zero
        for j in 0..<4 {
            let row = Int(top) - 1 + j
            guard 0..<image.height ~= row else { continue }
            for i in 0..<4 {
                let column = Int(left) - 1 + i
                guard 0..<image.width ~= column else { continue }
                sum += premultiplied(row * image.width + column) * (across[i] * down[j])
            }
        }
        guard sum.w >= 0.5 else { return .zero }
        var color = sum * (255 / sum.w)
        color.w = sum.w
        color.clamp(lowerBound: .zero, upperBound: SIMD4(repeating: 255))
        return SIMD4<UInt8>(color.rounded(.toNearestOrAwayFromZero))
    }

    private func premultiplied(_ pixel: Int) -> SIMD4<Float> {
        image.pixels.withUnsafeBufferPointer { pixels in
            let at = pixel * channels
            let color = SIMD4<Float>(Float(pixels[at]), Float(pixels[at + 1]), Float(pixels[at + 2]), 255)
            return channels == 3 ? color : color * (Float(pixels[at + 3]) / 255)
        }
    }

    private static func weights(_ t: Float) -> SIMD4<Float> {
        SIMD4(
            ((-0.5 * t + 1) * t - 0.5) * t, (1.5 * t - 2.5) * t * t + 1, ((-1.5 * t + 2) * t + 0.5) * t,
            (0.5 * t - 0.5) * t * t)
    }
}
