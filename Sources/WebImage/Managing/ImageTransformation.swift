struct ImageTransformation: Sendable {
    /// Replaces the downloaded image; nil keeps it (`transformDownloadedImage:`).
    var transform: (@Sendable (ImageBody, ImageInfo) -> [UInt8]?)?
    /// Converts it to the bytes on disk; nil keeps them (`cacheSerializer`).
    var serialize: (@Sendable (ImageBody, ImageInfo) -> [UInt8]?)?
}
