/// Mirrors an image (SDImageFlippingTransformer).
public struct ImageFlippingTransformer: ImageTransformer {
    /// Whether left and right are exchanged.
    public let horizontal: Bool
    /// Whether top and bottom are exchanged.
    public let vertical: Bool

    /// Creates a transformer; with both, it turns an image upside down.
    public init(horizontal: Bool, vertical: Bool) {
        (self.horizontal, self.vertical) = (horizontal, vertical)
    }

    /// Such as `ImageFlippingTransformer(1,0)`: horizontal, vertical.
    public var transformerKey: String {
        "ImageFlippingTransformer(\(KeyNumber.text(horizontal)),\(KeyNumber.text(vertical)))"
    }

    /// Mirrors the image.
    public func transformedImage(with image: Bitmap, for key: String) throws(WebImageError) -> Bitmap {
        var grid = PixelGrid(image.upright)
        if horizontal { grid.mirror() }
        if vertical {
            grid.mirror()
            grid.turn(2)
        }
        return grid.image()
    }
}
