/// How an image is decoded (SDImageCoderOptions).
public struct ImageDecodeOptions: Sendable, Equatable {
    /// Whether the bitmap is turned upright, by ``ImageInfo/orientation``; default true. If false, ``Bitmap/orientation`` tells it.
    public var appliesOrientation = true
    /// The scale factor of the bitmap (`decodeScaleFactor`), at least 1; default 1. ``ImageScale/factor(forKey:)`` is that of a name.
    public var scale = 1.0
    /// Decodes a JPEG at 1/8, 1/4 or 1/2 of its size if that is at least this in both directions (before orientation); nil (default):
    /// at full size. Other formats ignore it.
    public var minimumSize: PixelSize?
    /// The size that the bitmap is made to fit, never enlarged, its aspect ratio preserved (`decodeThumbnailPixelSize`); 0 in one
    /// direction: any. nil (default): the image's own.
    public var thumbnailPixelSize: PixelSize?
    /// Whether a thumbnail keeps the aspect ratio (`decodePreserveAspectRatio`); default true.
    public var preservesAspectRatio = true
    /// Reduces the image until its bitmap takes at most so many bytes, at 4 a pixel (`decodeScaleDownLimitBytes`); nil (default): not.
    /// SDWebImage's option ScaleDownLargeImages means 60 MiB. The image is reduced while it is decoded, row by row; as a whole in memory are
    /// only the coefficients of a progressive JPEG, the pixels of an interlaced PNG and of a WebP with alpha, the indices of a GIF, the
    /// planes of an AVIF, and all frames of an animation.
    public var scaleDownLimitBytes: Int?
    /// Decodes a JPEG or PNG as far as its bytes go, for progressive display; default false. The missing rows are black, or as libjpeg
    /// paints them; ``Bitmap/decodedRows`` tells where they start.
    public var isPartial = false
    /// The part and the size of the upright bitmap, in place of the other rules; nil: they hold.
    var sizing: ImageSizing?

    /// Default options.
    public init() {}
}

extension ImageDecodeOptions {
    /// The size of the upright bitmap; nil: the image's own.
    func targetSize(of image: PixelSize) -> PixelSize? {
        var size = image
        if let thumbnail = thumbnailPixelSize {
            // 0 in one direction: any.
            let box = PixelSize(
                width: thumbnail.width > 0 ? thumbnail.width : .max >> 32,
                height: thumbnail.height > 0 ? thumbnail.height : .max >> 32)
            size = ImageSizing.scaledSize(
                of: size, to: box, preservesAspectRatio: preservesAspectRatio, scalesUp: false)
        }
        if let scaleDownLimitBytes { size = ImageSizing.scaledSize(of: size, limitBytes: scaleDownLimitBytes) }
        return size == image ? nil : size
    }

    /// What becomes of the image before orientation; nil: it keeps its size.
    func storedSizing(of info: ImageInfo) -> ImageSizing? {
        let image = PixelSize(width: info.displayWidth, height: info.displayHeight)
        let sizing = sizing ?? targetSize(of: image).map { ImageSizing(image, exactly: $0) }
        guard let sizing, sizing.scaled != image else { return nil }
        return sizing.stored(image, info.orientation)
    }
}

extension PixelSize {
    /// The size before, or after, an image is turned upright.
    func swapped(_ orientation: ImageOrientation) -> PixelSize {
        orientation.swapsSides ? PixelSize(width: height, height: width) : self
    }
}
