package import WebImage

package struct ExportedLine: Sendable, Equatable {
    /// What a decoder found out about an image besides its size.
    package struct Traits: Sendable, Equatable {
        /// 1 to 8, as in EXIF.
        package var orientation: Int
        package var frames: Int
        package var hasAlpha: Bool
        package var colorSpace: ImageColorSpace

        package init(orientation: Int, frames: Int, hasAlpha: Bool, colorSpace: ImageColorSpace) {
            (self.orientation, self.frames, self.hasAlpha) = (orientation, frames, hasAlpha)
            self.colorSpace = colorSpace
        }
    }

    package struct Image: Sendable, Equatable {
        /// Valid in the current directory of the command.
        package var path: String
        package var bytes: Int
        /// Hex SHA-256; nil if none is stored.
        package var sha256: String?
        /// Nil if unknown, as with `--validate none`.
        package var format: ImageFormat?
        /// Pixels; nil if unknown.
        package var width: Int?, height: Int?
        /// What was fetched, if the file was made of it.
        package var original: OriginalImage?
        /// Hex SHA-256 of it; nil if unknown.
        package var originalSHA256: String?
        /// Hex digits of its ``PerceptualHash``; nil if nobody asks, or it cannot be decoded.
        package var perceptualHash: String?
        /// How far it was verified; nil if not recorded.
        package var level: ValidationLevel?
        /// Nil if it was not verified.
        package var traits: Traits?

        package init(
            path: String, bytes: Int, sha256: String? = nil, format: ImageFormat? = nil, width: Int? = nil,
            height: Int? = nil, level: ValidationLevel? = nil, traits: Traits? = nil
        ) {
            (self.path, self.bytes, self.sha256, self.format) = (path, bytes, sha256, format)
            (self.width, self.height, self.level) = (width, height, level)
            self.traits = traits
        }
    }

    package var result: BatchResults.Line
    /// Nil if it ended without one, or if it is in another cache, or was deleted since.
    package var image: Image?
    /// The machine that has the image, if another one.
    package var host: String?
    /// The key of the first line of its shard with the same bytes, where these are kept once.
    package var duplicateOf: String?

    package init(_ result: BatchResults.Line, image: Image? = nil) { (self.result, self.image) = (result, image) }

    init(_ result: BatchResults.Line, _ entry: CacheEntry?, isElsewhere: Bool = false) {
        self.result = result
        host = isElsewhere ? result.cache?.host : nil
        guard let entry else { return }
        func known<Value: Equatable>(_ value: Value?, unless nothing: Value) -> Value? {
            value == nothing ? nil : value
        }
        let record = entry.knownRecord
        image = Image(
            path: entry.path, bytes: entry.size, sha256: record?.digest?.hex,
            format: known(record?.format, unless: .unknown), width: known(record?.width, unless: 0),
            height: known(record?.height, unless: 0), level: record?.level, traits: record.flatMap(Traits.init))
        image?.original = record?.original
    }
}

extension ExportedLine.Traits {
    /// Nil for an image that no decoder has read.
    fileprivate init?(_ record: CacheRecord) {
        guard record.level >= .structure, record.width > 0 else { return nil }
        self.init(
            orientation: Int(record.orientation.rawValue), frames: record.frameCount, hasAlpha: record.hasAlpha,
            colorSpace: record.colorSpace)
    }
}
