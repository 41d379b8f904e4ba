internal import CImageCodec

/// A part of an image scaled to a size by an antialiased Lanczos filter (three lobes, widened by the reduction).
struct Resampling {
    let image: Bitmap
    let sizing: ImageSizing
    /// Whether vector instructions of this processor are used, with the same result.
    var isFast = true

    /// Bytes that it needs besides the image and its result: rows of the result's width for one position of the filter, and weights.
    static func scratchMemory(_ size: PixelSize, hasAlpha: Bool, _ sizing: ImageSizing) -> Int {
        var request = request(size, hasAlpha, sizing)
        return Int(clamping: image_resample_memory(&request))
    }

    /// * `coder`: whose processes do it; nil: this one.
    /// - Throws: `invalidConfiguration` for a size over 65,535. `localFault` if out of memory.
    func pixels(by coder: ImageCoder? = nil) throws(WebImageError) -> [UInt8] {
        let size = PixelSize(width: image.width, height: image.height)
        var request = Self.request(size, image.hasAlpha, sizing)
        request.is_fast = isFast
        let count = sizing.scaled.width * sizing.scaled.height * (image.hasAlpha ? 4 : 3)
        if let coder, let sandbox = coder.sandbox, image_resample_memory(&request) > 0, sandbox.isUsed {
            do throws(ImageFault) {
                return try coder.codec.resample(request, image.pixels, count: count, in: sandbox)
            } catch { throw error.error }
        }
        var status = Int32(IMAGE_RESAMPLE_DONE.rawValue)
        let pixels = [UInt8](unsafeUninitializedCapacity: count) { result, written in
            image.pixels.withUnsafeBufferPointer { source in
                status = image_resample(&request, source.baseAddress, result.baseAddress)
            }
            written = status == IMAGE_RESAMPLE_DONE.rawValue ? count : 0
        }
        switch UInt32(bitPattern: status) {
        case IMAGE_RESAMPLE_DONE.rawValue: return pixels
        case IMAGE_RESAMPLE_NO_MEMORY.rawValue:
            throw WebImageError(.localFault, "there is not enough memory to resize an image")
        default:
            throw WebImageError(
                .invalidConfiguration,
                "\(size.width) x \(size.height) pixels cannot be resized to \(sizing.scaled.width) x \(sizing.scaled.height)"
            )
        }
    }

    private static func request(_ size: PixelSize, _ hasAlpha: Bool, _ sizing: ImageSizing) -> image_resample_request {
        image_resample_request(
            width: UInt32(clamping: size.width), height: UInt32(clamping: size.height),
            channels: hasAlpha ? 4 : 3, left: sizing.left, top: sizing.top, right: sizing.right,
            bottom: sizing.bottom, to_width: UInt32(clamping: sizing.scaled.width),
            to_height: UInt32(clamping: sizing.scaled.height), is_fast: true)
    }
}

extension Bitmap {
    /// The whole image at another size, whatever its proportions. Orientation, scale and metadata are kept.
    func scaled(to size: PixelSize, by coder: ImageCoder? = nil) throws(WebImageError) -> Bitmap {
        guard size.width != width || size.height != height else { return self }
        let sizing = ImageSizing(PixelSize(width: width, height: height), exactly: size)
        return remade(size, hasAlpha: hasAlpha, pixels: try Resampling(image: self, sizing: sizing).pixels(by: coder))
    }
}
