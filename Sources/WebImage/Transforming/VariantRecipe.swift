/// What is stored instead of an image: how it is made, and under which key.
package struct VariantRecipe: Sendable {
    let key: String
    let keepsOriginal: Bool
    private let transformsAnimations: Bool
    private let source: Source

    private enum Source: Sendable {
        case variant(ImageVariant)
        case transformer(any ImageTransformer)
    }

    package init(_ variant: ImageVariant) {
        key = variant.transformerKey
        keepsOriginal = variant.keepsOriginal
        transformsAnimations = variant.transformsAnimations
        source = .variant(variant)
    }

    init(_ transformer: any ImageTransformer, transformsAnimations: Bool, keepsOriginal: Bool) {
        let own = transformer.transformerKey
        key = transformsAnimations && !own.isEmpty ? "\(own)-\(ImageVariant.stillKey)" : own
        self.keepsOriginal = keepsOriginal
        self.transformsAnimations = transformsAnimations
        source = .transformer(transformer)
    }

    /// The bytes of the variant; nil if the image stays as it is: an animation, a format that is not decoded, or an image that is already
    /// as it should be.
    /// * `info`: of the level `structure` or above, as others do not count frames.
    func bytes(
        of original: UnsafeRawBufferPointer, _ info: ImageInfo, key: String, coder: ImageCoder
    ) throws(WebImageError) -> [UInt8]? {
        guard !info.isAnimated || transformsAnimations, ImageCoder.canDecode(info.format) else { return nil }
        switch source {
        case .variant(let variant): return try Self.bytes(of: original, info, variant, coder)
        case .transformer(let transformer):
            let image = try coder.decode(original)
            var transformed = try transformer.transformedImage(with: image, for: key)
            guard transformed != image || info.isAnimated else { return nil }
            transformed.metadata = transformed.metadata.ofRGB
            return try coder.encode(transformed, as: Self.format(nil, info, transformed))
        }
    }

    private static func bytes(
        of original: UnsafeRawBufferPointer, _ info: ImageInfo, _ variant: ImageVariant, _ coder: ImageCoder
    ) throws(WebImageError) -> [UInt8]? {
        let size = PixelSize(width: info.displayWidth, height: info.displayHeight)
        let sizing = sizing(variant, of: size)
        let isSame =
            sizing.keeps(size) && (variant.format ?? info.format) == info.format && info.orientation == .up
        if isSame && !variant.stripsMetadata && !info.isAnimated { return nil }
        let need = try memory(sizing, of: size, coder)
        var options = ImageDecodeOptions()
        options.sizing = sizing
        let decoded = try coder.decode(original, options: options)
        // After the decode has given back its own: two that hold some and wait for more would wait for ever.
        coder.memory.acquire(need)
        defer { coder.memory.release(need) }
        var bitmap = decoded.padded(sizing)
        bitmap.metadata = variant.stripsMetadata ? ImageMetadata() : bitmap.metadata.ofRGB
        return try coder.encode(bitmap, as: format(variant.format, info, bitmap), quality: variant.quality)
    }

    /// Bytes of the resized image and of the canvas it is put on.
    private static func memory(
        _ sizing: ImageSizing, of size: PixelSize, _ coder: ImageCoder
    ) throws(WebImageError) -> Int {
        let pixels = sizing.scaled.width * sizing.scaled.height + sizing.canvas.width * sizing.canvas.height
        let need = 4 * pixels
        guard need <= coder.limits.maxMemory else {
            throw WebImageError(
                .tooLarge,
                "to resize \(size.width) x \(size.height) pixels to \(sizing.canvas.width) x \(sizing.canvas.height) takes \(mebibytes(need)), the limit is \(mebibytes(coder.limits.maxMemory)) (--max-decode-memory raises it)",
                reason: .decodeMemory)
        }
        return need
    }

    private static func mebibytes(_ count: Int) -> String {
        let tenths = count / (1 << 20) * 10 + count % (1 << 20) * 10 / (1 << 20)
        return "\(tenths / 10).\(tenths % 10) MiB"
    }

    /// The size of the result for an upright image of this size.
    package static func size(of image: PixelSize, _ variant: ImageVariant) -> PixelSize {
        sizing(variant, of: image).canvas
    }

    /// What becomes of an upright image of this size. The limit holds for what the size leaves.
    private static func sizing(_ variant: ImageVariant, of image: PixelSize) -> ImageSizing {
        let limit = variant.limitBytes ?? .max
        guard let resize = variant.resize else {
            return ImageSizing(image, exactly: ImageSizing.scaledSize(of: image, limitBytes: limit))
        }
        let sizing = ImageSizing(image, to: resize, fit: variant.fit, scalesUp: variant.scalesUp)
        let limited = ImageSizing.scaledSize(of: sizing.canvas, limitBytes: limit)
        return limited == sizing.canvas
            ? sizing : ImageSizing(image, to: limited, fit: variant.fit, scalesUp: variant.scalesUp)
    }

    private static func format(_ wanted: ImageFormat?, _ info: ImageInfo, _ image: Bitmap) -> ImageFormat {
        if let wanted { return wanted }
        switch info.format {
        case .jpeg, .png: return info.format
        case .webp where ImageCoder.canDecode(.webp): return .webp
        default: return image.hasAlpha ? .png : .jpeg
        }
    }
}

extension ImageMetadata {
    /// Without the profile of a file in grey or CMYK: pixels are RGB (ICC.1:2022, 7.2.6).
    fileprivate var ofRGB: ImageMetadata {
        guard iccProfile.count < 128 || !iccProfile[16..<20].elementsEqual("RGB ".utf8) else { return self }
        return ImageMetadata(exif: exif)
    }
}
