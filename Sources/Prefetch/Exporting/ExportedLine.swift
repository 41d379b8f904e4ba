internal import WebImage

/// One line of a manifest.
package struct ExportedLine: Sendable, Equatable {
    /// What the cache knows of an image.
    package struct Image: Sendable, Equatable {
        /// Opens from where the command runs.
        package var path: String
        package var bytes: Int
        /// Hex SHA-256; nil where none is kept.
        package var sha256: String?
        /// Nil where nobody looked, as with `--validate none`.
        package var format: ImageFormat?
        /// Pixels; nil where nobody looked.
        package var width: Int?, height: Int?
        /// How far it was verified; nil where nobody wrote it down.
        package var level: ValidationLevel?

        package init(
            path: String, bytes: Int, sha256: String? = nil, format: ImageFormat? = nil, width: Int? = nil,
            height: Int? = nil, level: ValidationLevel? = nil
        ) {
            (self.path, self.bytes, self.sha256, self.format) = (path, bytes, sha256, format)
            (self.width, self.height, self.level) = (width, height, level)
        }
    }

    /// The line and how it ended.
    package var result: BatchResults.Line
    /// Nil where it ended without one, or it is in another cache, or somebody has deleted it since.
    package var image: Image?
    /// The machine that has the image, where it is not in the cache that was looked into.
    package var host: String?

    package init(_ result: BatchResults.Line, image: Image? = nil) { (self.result, self.image) = (result, image) }

    init(_ result: BatchResults.Line, _ entry: CacheEntry?, isElsewhere: Bool = false) {
        self.result = result
        host = isElsewhere ? result.cache?.host : nil
        guard let entry else { return }
        func known<Value: Equatable>(_ value: Value?, unless nothing: Value) -> Value? {
            value == nothing ? nil : value
        }
        let record = entry.record
        image = Image(
            path: entry.path, bytes: entry.size, sha256: record?.digest?.hex,
            format: known(record?.format, unless: .unknown), width: known(record?.width, unless: 0),
            height: known(record?.height, unless: 0), level: record?.level)
    }
}
