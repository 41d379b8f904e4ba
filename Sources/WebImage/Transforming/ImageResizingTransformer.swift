/// Scales an image to a size, in its proportions (SDImageResizingTransformer). The filter is Lanczos with three lobes, widened by the
/// reduction; colours are weighted by their alpha.
public struct ImageResizingTransformer: ImageTransformer {
    /// In pixels, 1 to 32,768.
    public let width: Int
    /// In pixels, 1 to 32,768.
    public let height: Int
    /// How an image fills the size.
    public let fit: ImageFit
    /// Whether images smaller than the size are enlarged.
    public let scalesUp: Bool
    /// The colour around the image with ``ImageFit/pad``; nil: transparent for images with alpha, white for others.
    public let background: ImageColor?

    /// Creates a transformer.
    /// - Parameters:
    ///   - width: 1 to 32,768 pixels.
    ///   - height: 1 to 32,768 pixels.
    ///   - fit: default `inside`.
    ///   - scalesUp: whether smaller images are enlarged; default false. Without it `inside` keeps them, `cover` at most cuts them, and
    ///     `pad` adds to them.
    ///   - background: the colour around the image with `pad`; nil (default): transparent for images with alpha, white for others.
    /// - Throws: `invalidConfiguration` for a width or height out of range.
    public init(
        width: Int, height: Int, fit: ImageFit = .inside, scalesUp: Bool = false, background: ImageColor? = nil
    ) throws(WebImageError) {
        let most = 32_768
        guard 1...most ~= width, 1...most ~= height else {
            throw WebImageError(
                .invalidConfiguration, "\(width) x \(height) is no size to resize to: 1 to \(most) pixels a side")
        }
        (self.width, self.height, self.fit, self.scalesUp) = (width, height, fit, scalesUp)
        self.background = background
    }

    /// Such as `ImageResizingTransformer({256.000000,256.000000},cover)`; the colour of `pad` and `up` follow if they are set.
    public var transformerKey: String {
        var parts = ["{\(KeyNumber.text(width)),\(KeyNumber.text(height))}", fit.rawValue]
        if fit == .pad, let background { parts.append(background.hexString) }
        if scalesUp { parts.append("up") }
        return "ImageResizingTransformer(\(parts.joined(separator: ",")))"
    }

    /// Scales the image; returns it as it is if its size stays the same.
    public func transformedImage(with image: Bitmap, for key: String) throws(WebImageError) -> Bitmap {
        let size = PixelSize(width: image.width, height: image.height)
        let sizing = ImageSizing(size, to: PixelSize(width: width, height: height), fit: fit, scalesUp: scalesUp)
        return try image.resized(sizing, of: size).padded(sizing, background)
    }
}

extension Bitmap {
    /// Resized by a rule for an image of size `original`, of which this is the bitmap, possibly at a smaller scale; not put on a canvas.
    /// * `coder`: whose processes filter the pixels; nil: this one.
    /// - Throws: `localFault` if out of memory.
    func resized(
        _ rule: ImageSizing, of original: PixelSize, by coder: ImageCoder? = nil
    ) throws(WebImageError) -> Bitmap {
        let size = PixelSize(width: width, height: height)
        let sizing = rule.mapped(from: original, to: size)
        guard sizing.scaled != size else { return self }
        let part = cut(sizing)
        if part.width == sizing.scaled.width, part.height == sizing.scaled.height { return part }
        return try remade(
            sizing.scaled, hasAlpha: hasAlpha, pixels: Resampling(image: self, sizing: sizing).pixels(by: coder))
    }

    /// The resized image in the middle of its canvas.
    /// * `background`: nil: transparent for images with alpha, white for others.
    func padded(_ sizing: ImageSizing, _ background: ImageColor? = nil) -> Bitmap {
        guard sizing.canvas != sizing.scaled else { return self }
        let color = background ?? (hasAlpha ? .clear : .white)
        let canvas = PixelCanvas(size: sizing.canvas, hasAlpha: hasAlpha || color.alpha < 255, color: color)
        return canvas.drawing(
            self, x: (sizing.canvas.width - sizing.scaled.width) / 2,
            y: (sizing.canvas.height - sizing.scaled.height) / 2)
    }

    /// The part that is seen, if its pixels are those of the result; otherwise the whole image.
    private func cut(_ sizing: ImageSizing) -> Bitmap {
        guard sizing.right - sizing.left == Double(sizing.scaled.width),
            sizing.bottom - sizing.top == Double(sizing.scaled.height)
        else { return self }
        return PixelCanvas(size: sizing.scaled, hasAlpha: hasAlpha, color: .clear).drawing(
            self, x: -Int(sizing.left), y: -Int(sizing.top))
    }
}
