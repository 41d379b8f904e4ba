/// Cuts a rectangle out of an image (SDImageCroppingTransformer).
public struct ImageCroppingTransformer: ImageTransformer {
    /// The distance from the left edge, in pixels.
    public let x: Int
    /// The distance from the top edge, in pixels.
    public let y: Int
    /// In pixels, at least 1.
    public let width: Int
    /// In pixels, at least 1.
    public let height: Int

    /// Creates a transformer.
    /// - Parameters:
    ///   - x: distance of the rectangle from the left edge, in pixels.
    ///   - y: distance of the rectangle from the top edge, in pixels.
    ///   - width: at least 1 pixel.
    ///   - height: at least 1 pixel.
    /// - Throws: `invalidConfiguration` for an empty rectangle, or numbers beyond 1,000,000.
    public init(x: Int, y: Int, width: Int, height: Int) throws(WebImageError) {
        let range = -1_000_000...1_000_000
        guard range ~= x, range ~= y, 1...range.upperBound ~= width, 1...range.upperBound ~= height else {
            throw WebImageError(
                .invalidConfiguration, "\(width) x \(height) pixels at (\(x), \(y)) are no rectangle to crop to")
        }
        (self.x, self.y, self.width, self.height) = (x, y, width, height)
    }

    /// Such as `ImageCroppingTransformer({50.000000,10.000000,200.000000,200.000000})`.
    public var transformerKey: String {
        let numbers = [x, y, width, height].map { KeyNumber.text($0) }
        return "ImageCroppingTransformer({\(numbers.joined(separator: ","))})"
    }

    /// Returns the part of the rectangle that lies inside the image.
    /// - Throws: `invalidConfiguration` if none does.
    public func transformedImage(with image: Bitmap, for key: String) throws(WebImageError) -> Bitmap {
        let image = image.upright
        let (left, top) = (max(0, x), max(0, y))
        let size = PixelSize(width: min(image.width, x + width) - left, height: min(image.height, y + height) - top)
        guard size.width > 0, size.height > 0 else {
            throw WebImageError(
                .invalidConfiguration,
                "\(width) x \(height) pixels at (\(x), \(y)) are outside of an image of \(image.width) x \(image.height)"
            )
        }
        return PixelCanvas(size: size, hasAlpha: image.hasAlpha, color: .clear).drawing(image, x: -left, y: -top)
    }
}
