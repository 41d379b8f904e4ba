/// The sizes and the part of an image that a resize takes, without pixels.
struct ImageSizing: Equatable {
    /// The part of the image that is seen, in its pixels; fractions occur with ``ImageFit/cover``.
    var left: Double
    var top: Double
    var right: Double
    var bottom: Double
    /// What that part is scaled to.
    var scaled: PixelSize
    /// The size of the result; larger than ``scaled`` with ``ImageFit/pad``.
    var canvas: PixelSize

    /// * `image`, `target`: at least 1 x 1.
    init(_ image: PixelSize, to target: PixelSize, fit: ImageFit, scalesUp: Bool) {
        (left, top, right, bottom) = (0, 0, Double(image.width), Double(image.height))
        switch fit {
        case .inside:
            scaled = Self.scaledSize(of: image, to: target, preservesAspectRatio: true, scalesUp: scalesUp)
            canvas = scaled
        case .shorter:
            let ratio = Double(min(target.width, target.height)) / Double(min(image.width, image.height))
            let scale = scalesUp ? ratio : min(1, ratio)
            scaled = PixelSize(
                width: Self.rounded(Double(image.width) * scale), height: Self.rounded(Double(image.height) * scale))
            canvas = scaled
        case .pad:
            scaled = Self.scaledSize(of: image, to: target, preservesAspectRatio: true, scalesUp: scalesUp)
            canvas = target
        case .cover:
            let ratio = max(
                Double(target.width) / Double(image.width), Double(target.height) / Double(image.height))
            let scale = scalesUp ? ratio : min(1, ratio)
            scaled = PixelSize(
                width: min(target.width, Self.rounded(Double(image.width) * scale)),
                height: min(target.height, Self.rounded(Double(image.height) * scale)))
            canvas = scaled
            // Whole pixels are cut off if nothing is scaled.
            let cutX = max(0, Double(image.width) - Double(scaled.width) / scale) / 2
            let cutY = max(0, Double(image.height) - Double(scaled.height) / scale) / 2
            left = scale == 1 ? cutX.rounded(.down) : cutX
            top = scale == 1 ? cutY.rounded(.down) : cutY
            right = min(right, scale == 1 ? left + Double(scaled.width) : right - cutX)
            bottom = min(bottom, scale == 1 ? top + Double(scaled.height) : bottom - cutY)
        }
    }

    /// SDWebImage's rule for thumbnails (`scaledSizeWithImageSize:scaleSize:preserveAspectRatio:shouldScaleUp:`): the size of an image
    /// scaled to a size, at least 1 x 1. If one of the sizes is empty, the image keeps its own.
    static func scaledSize(
        of image: PixelSize, to target: PixelSize, preservesAspectRatio: Bool, scalesUp: Bool
    ) -> PixelSize {
        guard image.width > 0, image.height > 0, target.width > 0, target.height > 0 else { return image }
        var size = target
        if preservesAspectRatio {
            let ratio = Double(image.width) / Double(image.height)
            if ratio > Double(target.width) / Double(target.height) {
                size.height = min(target.height, rounded(Double(target.width) / ratio))
            } else {
                size.width = min(target.width, rounded(Double(target.height) * ratio))
            }
        }
        guard !scalesUp else { return size }
        return PixelSize(width: min(size.width, image.width), height: min(size.height, image.height))
    }

    /// The size at which a bitmap of 4 bytes a pixel takes at most `limitBytes` (`scaledSizeWithImageSize:limitBytes:`); never larger.
    static func scaledSize(of image: PixelSize, limitBytes: Int) -> PixelSize {
        let pixels = image.width * image.height, limit = max(1, limitBytes / 4)
        guard pixels > limit else { return image }
        let factor = (Double(limit) / Double(pixels)).squareRoot()
        return PixelSize(
            width: max(1, Int(Double(image.width) * factor)), height: max(1, Int(Double(image.height) * factor)))
    }

    /// The whole image scaled to a size, whatever its proportions.
    init(_ image: PixelSize, exactly size: PixelSize) {
        (left, top, right, bottom) = (0, 0, Double(image.width), Double(image.height))
        (scaled, canvas) = (size, size)
    }

    /// Whether the result is the image itself.
    func keeps(_ image: PixelSize) -> Bool { scaled == image && canvas == image }

    /// The same, without a canvas, before an image is turned upright.
    /// * `image`: its upright size.
    func stored(_ image: PixelSize, _ orientation: ImageOrientation) -> ImageSizing {
        var stored = self
        if orientation.startsAtEnd.across {
            (stored.left, stored.right) = (Double(image.width) - right, Double(image.width) - left)
        }
        if orientation.startsAtEnd.down {
            (stored.top, stored.bottom) = (Double(image.height) - bottom, Double(image.height) - top)
        }
        if orientation.swapsSides {
            swap(&stored.left, &stored.top)
            swap(&stored.right, &stored.bottom)
        }
        stored.scaled = scaled.swapped(orientation)
        stored.canvas = stored.scaled
        return stored
    }

    /// The least size of a JPEG to decode it at: half as large again as the result needs, because libjpeg's reduction is a box filter, whose
    /// softness the second one has to hide.
    func leastSize(of image: PixelSize) -> PixelSize {
        let factor = 1.5 * max(Double(scaled.width) / (right - left), Double(scaled.height) / (bottom - top))
        return PixelSize(
            width: Self.rounded(Double(image.width) * factor), height: Self.rounded(Double(image.height) * factor))
    }

    /// The same for another bitmap of the image, at a smaller scale. A JPEG decoded at 1/2, 1/4 or 1/8 has its last row and column only in
    /// part: 401 of 801 pixels are 400.5.
    func mapped(from image: PixelSize, to bitmap: PixelSize) -> ImageSizing {
        guard image != bitmap else { return self }
        let divisor = [2, 4, 8].first {
            (image.width + $0 - 1) / $0 == bitmap.width && (image.height + $0 - 1) / $0 == bitmap.height
        }
        func place(_ at: Double, _ image: Int, _ bitmap: Int) -> Double {
            min(at * (divisor.map { 1 / Double($0) } ?? Double(bitmap) / Double(image)), Double(bitmap))
        }
        var mapped = self
        (mapped.left, mapped.right) = (place(left, image.width, bitmap.width), place(right, image.width, bitmap.width))
        (mapped.top, mapped.bottom) = (
            place(top, image.height, bitmap.height), place(bottom, image.height, bitmap.height)
        )
        return mapped
    }

    private static func rounded(_ pixels: Double) -> Int { max(1, Int(pixels.rounded())) }
}
