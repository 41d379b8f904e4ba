import Origin
import WebImage

/// One small image of each kind the coder checks.
enum Sample: String, CaseIterable, Sendable {
    case baselineJPEG, progressiveJPEG, restartJPEG, grayJPEG, cmykJPEG
    case png, interlacedPNG, palettePNG, gray16PNG, rgba16PNG, interlacedGrayAlphaPNG
    case animatedPNG, gif, animatedGIF, compressedGIF, webp, lossyWebP, alphaWebP, animatedWebP, avif, animatedAVIF

    static let width = 41
    static let height = 29

    /// Made once: the tests share them.
    static let all: [Sample: [UInt8]] = Dictionary(uniqueKeysWithValues: allCases.map { ($0, $0.make()) })

    var bytes: [UInt8] { Self.all[self] ?? [] }

    var format: ImageFormat {
        switch self {
        case .baselineJPEG, .progressiveJPEG, .restartJPEG, .grayJPEG, .cmykJPEG: .jpeg
        case .png, .interlacedPNG, .palettePNG, .gray16PNG, .rgba16PNG, .interlacedGrayAlphaPNG,
            .animatedPNG:
            .png
        case .gif, .animatedGIF, .compressedGIF: .gif
        case .webp, .lossyWebP, .alphaWebP, .animatedWebP: .webp
        case .avif, .animatedAVIF: .avif
        }
    }

    /// Those whose verdict has to be that of libjpeg's or libpng's full decode.
    static let decoded = allCases.filter { ($0.format == .jpeg || $0.format == .png) && $0 != .animatedPNG }

    /// What a check says of it.
    func info(level: ValidationLevel) -> ImageInfo {
        let colorSpace: ImageColorSpace =
            switch self {
            case .grayJPEG, .gray16PNG, .interlacedGrayAlphaPNG: .gray
            case .cmykJPEG: .cmyk
            case .palettePNG, .gif, .animatedGIF, .compressedGIF: .indexed
            default: .rgb
            }
        // The boxes of an AVIF come first.
        let frames = level == .header ? 1 : frameCount
        let hasAlpha =
            switch self {
            case .rgba16PNG, .interlacedGrayAlphaPNG, .alphaWebP, .animatedAVIF: true
            default: false
            }
        return ImageInfo(
            format: format, width: Self.width, height: Self.height, level: level, frameCount: frames,
            hasAlpha: hasAlpha, colorSpace: colorSpace)
    }

    var frameCount: Int {
        switch self {
        case .animatedPNG, .animatedWebP, .animatedAVIF: 2
        case .animatedGIF, .compressedGIF: 3
        default: 1
        }
    }

    /// Two frames; the second is of the size of the first, and its data is in two chunks.
    private static func animation() -> [UInt8] {
        let (first, second) = (
            GeneratedImage.png(seed: 16, width: width, height: height),
            ChunkSurgery.data(of: "IDAT", in: GeneratedImage.png(seed: 17, width: width, height: height))
        )
        func control(_ sequence: Int) -> [UInt8] {
            let size = ChunkSurgery.bigEndian(width) + ChunkSurgery.bigEndian(height) + [UInt8](repeating: 0, count: 8)
            return ChunkSurgery.pngChunk("fcTL", ChunkSurgery.bigEndian(sequence) + size + [0, 1, 0, 10, 0, 0])
        }
        let start = ChunkSurgery.pngChunk("acTL", ChunkSurgery.bigEndian(2) + ChunkSurgery.bigEndian(0)) + control(0)
        let parts = [second[..<100], second[100...]].enumerated().flatMap { index, part in
            ChunkSurgery.pngChunk("fdAT", ChunkSurgery.bigEndian(2 + index) + part)
        }
        return ChunkSurgery.insert(
            control(1) + parts, before: "IEND", in: ChunkSurgery.insert(start, before: "IDAT", in: first))
    }

    private func make() -> [UInt8] {
        let (width, height) = (Self.width, Self.height)
        return switch self {
        case .baselineJPEG: GeneratedImage.jpeg(seed: 1, width: width, height: height)
        case .progressiveJPEG: GeneratedImage.jpeg(seed: 2, width: width, height: height, progressive: true)
        case .restartJPEG: GeneratedImage.jpeg(seed: 3, width: width, height: height, restartInterval: 2)
        case .grayJPEG: GeneratedImage.jpeg(seed: 4, width: width, height: height, color: .gray)
        case .cmykJPEG: GeneratedImage.jpeg(seed: 5, width: width, height: height, color: .cmyk)
        case .png: GeneratedImage.png(seed: 6, width: width, height: height)
        case .interlacedPNG: GeneratedImage.png(seed: 7, width: width, height: height, interlaced: true)
        case .palettePNG: GeneratedImage.png(seed: 8, width: width, height: height, color: .palette)
        case .gray16PNG: GeneratedImage.png(seed: 9, width: width, height: height, color: .gray, depth: 16)
        case .rgba16PNG: GeneratedImage.png(seed: 10, width: width, height: height, color: .rgba, depth: 16)
        case .interlacedGrayAlphaPNG:
            GeneratedImage.png(seed: 11, width: width, height: height, interlaced: true, color: .grayAlpha)
        case .animatedPNG: Self.animation()
        case .compressedGIF: HexSamples.gif
        case .alphaWebP: HexSamples.alphaWebP
        case .avif: HexSamples.avif
        case .animatedAVIF: HexSamples.animatedAVIF
        case .gif: GeneratedImage.gif(seed: 12, width: width, height: height)
        case .animatedGIF: GeneratedImage.gif(seed: 13, width: width, height: height, frames: 3)
        case .webp: GeneratedImage.webp(seed: 14, width: width, height: height)
        case .lossyWebP: WebPSamples.lossy
        case .animatedWebP: WebPSamples.animation(of: GeneratedImage.webp(seed: 15, width: width, height: height))
        }
    }
}

extension ImageCoder {
    /// The check of an array.
    func verify(_ bytes: [UInt8], level: ValidationLevel) throws(WebImageError) -> ImageInfo {
        try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in try verify(bytes, level: level) }
    }

    func inspectHeader(_ bytes: [UInt8]) throws(WebImageError) -> Bool {
        try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in try inspectHeader(bytes) != nil }
    }

    /// nil where the check passes.
    func failure(_ bytes: [UInt8], level: ValidationLevel) -> WebImageError? {
        do throws(WebImageError) {
            _ = try verify(bytes, level: level)
            return nil
        } catch {
            return error
        }
    }
}
