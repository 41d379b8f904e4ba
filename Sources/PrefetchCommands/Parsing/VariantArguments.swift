public import ArgumentParser
public import Prefetch
internal import WebImage

/// How images are changed before they are stored.
struct VariantArguments: ParsableArguments {
    @Option(
        help: .value(
            "wxh",
            "Resize images to fit this size in pixels: 256x192, or 256 for 256x256. Smaller ones stay. (default: no resizing)"
        ))
    var resize: PixelSize?

    @Option(help: "How an image fits the size: inside (whole), cover (cut to it) or pad (whole, with a background).")
    var fit: ImageFit?

    @Flag(help: "Enlarge images that are smaller than the size, too.")
    var upscale = false

    @Option(
        help: .value(
            "format", "Store images as jpeg, png, webp or keep: in their own format, or PNG or JPEG. (default: keep)"))
    var imageFormat: String?

    @Option(help: .value("n", "Quality of JPEG and WebP images that are written, 1 to 100. (default: 90)"))
    var quality: Int?

    @Flag(help: "Drop EXIF data and color profiles of images.")
    var strip = false

    @Flag(help: "Store the original images, too.")
    var keepOriginal = false

    /// Nil if images are stored as they are.
    var variant: ImageVariant? {
        var variant = ImageVariant()
        variant.resize = resize
        variant.fit = fit ?? .inside
        variant.scalesUp = upscale
        variant.format = imageFormat.flatMap(ImageFormat.init(rawValue:))
        variant.quality = quality ?? variant.quality
        variant.stripsMetadata = strip
        variant.keepsOriginal = keepOriginal
        return variant == ImageVariant() ? nil : variant
    }

    func validate() throws {
        let formats = ["jpeg", "png", "webp", "keep"]
        if let imageFormat, !formats.contains(imageFormat) {
            let closest = formats.map { ($0, EditDistance.between($0, imageFormat)) }.min { $0.1 < $1.1 }
            let guess = closest.flatMap { $0.1 <= 2 ? "; did you mean \($0.0)?" : nil } ?? ""
            throw ValidationError("--image-format is jpeg, png, webp or keep, not '\(imageFormat)'\(guess)")
        }
        if let quality, !(1...100).contains(quality) {
            throw ValidationError("--quality is 1 to 100, not \(quality)")
        }
        if resize == nil {
            for (option, isGiven) in [("--fit", fit != nil), ("--upscale", upscale)] where isGiven {
                throw ValidationError("\(option) says how images are resized: add --resize WIDTHxHEIGHT")
            }
        }
        if let variant, variant.isIdentity, imageFormat != "keep" || quality != nil || keepOriginal {
            let option = quality != nil ? "--quality" : "--keep-original"
            throw ValidationError("\(option) changes nothing without --resize, --image-format or --strip")
        }
    }
}

extension PixelSize: ExpressibleByArgument {
    /// `256x256`, 1 to 32,768 pixels a side; one number is both.
    public init?(argument: String) {
        let sides = argument.lowercased().split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
        guard (1...2).contains(sides.count), let width = sides[0], let height = sides[sides.count - 1],
            1...32_768 ~= width, 1...32_768 ~= height
        else { return nil }
        self.init(width: width, height: height)
    }
}

extension ImageFit: ExpressibleByArgument {}
