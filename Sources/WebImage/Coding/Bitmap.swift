/// A decoded single-frame image (UIImage, without a screen).
public struct Bitmap: Sendable, Equatable {
    /// In pixels.
    public let width: Int
    /// In pixels.
    public let height: Int
    /// Whether pixels are RGBA, not premultiplied, instead of RGB.
    public let hasAlpha: Bool
    /// One byte per channel, rows without padding, top row first.
    public let pixels: [UInt8]
    /// How the pixels have to be turned; `up` unless the decode was to leave them as they are.
    public var orientation = ImageOrientation.up
    /// Pixels per point, at least 1 (`UIImage.scale`); default 1.
    public var scale = 1.0
    /// EXIF data and colour profile of the file; empty by default.
    public var metadata = ImageMetadata()
    /// Rows that were there, fewer than ``height`` only if the bytes ended early (``ImageDecodeOptions/isPartial``).
    public var decodedRows: Int

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
        self.init(PixelSize(width: width, height: height), hasAlpha: hasAlpha, checked: pixels)
    }

    /// * `pixels`: of the right length.
    init(_ size: PixelSize, hasAlpha: Bool, checked pixels: [UInt8]) {
        width = size.width
        height = size.height
        self.hasAlpha = hasAlpha
        self.pixels = pixels
        decodedRows = size.height
    }

    /// Other pixels with what else belongs to this image.
    /// * `pixels`: of the right length.
    func remade(_ size: PixelSize, hasAlpha: Bool, pixels: [UInt8]) -> Bitmap {
        var made = Bitmap(size, hasAlpha: hasAlpha, checked: pixels)
        (made.orientation, made.scale, made.metadata) = (orientation, scale, metadata)
        return made
    }

    var channels: Int { hasAlpha ? 4 : 3 }

    /// The image turned upright; its EXIF data says so.
    public var upright: Bitmap {
        guard orientation != .up else { return self }
        var turned = Bitmap(
            orientation.swapsSides ? PixelSize(width: height, height: width) : PixelSize(width: width, height: height),
            hasAlpha: hasAlpha, checked: turnedPixels)
        turned.scale = scale
        turned.metadata = metadata
        turned.metadata.exif = ImageCodec.upright(exif: metadata.exif)
        if decodedRows < height { turned.decodedRows = orientation == .upMirrored ? decodedRows : 0 }
        return turned
    }

    /// Walks the source in the order of the result: one step for each pixel of a row, another for each row.
    private var turnedPixels: [UInt8] {
        let (last, bottom) = (width - 1, (height - 1) * width)
        let (start, column, row) =
            switch orientation {
            case .up: (0, 1, width)
            case .upMirrored: (last, -1, width)
            case .down: (bottom + last, -1, -width)
            case .downMirrored: (bottom, 1, -width)
            case .leftMirrored: (0, width, 1)
            case .right: (bottom, -width, 1)
            case .rightMirrored: (bottom + last, -width, -1)
            case .left: (last, width, -1)
            }
        let (columns, rows) = orientation.swapsSides ? (height, width) : (width, height)
        let channels = channels
        return [UInt8](unsafeUninitializedCapacity: pixels.count) { turned, count in
            pixels.withUnsafeBufferPointer { pixels in
                for y in 0..<rows {
                    var source = (start + y * row) * channels
                    for _ in 0..<columns {
                        for channel in 0..<channels { turned[count + channel] = pixels[source + channel] }
                        count += channels
                        source += column * channels
                    }
                }
            }
        }
    }

    /// RGB, with transparent pixels blended onto a colour.
    func opaquePixels(on background: ImageColor = .white) -> [UInt8] {
        guard hasAlpha else { return pixels }
        let below = [Int(background.red), Int(background.green), Int(background.blue)]
        return [UInt8](unsafeUninitializedCapacity: width * height * 3) { opaque, count in
            for pixel in 0..<width * height {
                let alpha = Int(pixels[4 * pixel + 3])
                for channel in 0..<3 {
                    let mixed = Int(pixels[4 * pixel + channel]) * alpha + below[channel] * (255 - alpha)
                    opaque[count] = UInt8((mixed + 127) / 255)
                    count += 1
                }
            }
        }
    }
}

/// All frames of an animation, or the one of a still image.
public struct AnimatedImage: Sendable, Equatable {
    /// A frame (SDImageFrame): the whole canvas.
    public struct Frame: Sendable, Equatable {
        /// The canvas with everything that was drawn so far.
        public var image: Bitmap
        /// How long it is shown; 0 for a still image, or if the file says nothing.
        public var duration: Duration
    }

    /// In order; at least one.
    public var frames: [Frame]
    /// How often it plays; 0: for ever.
    public var loopCount: Int
}
