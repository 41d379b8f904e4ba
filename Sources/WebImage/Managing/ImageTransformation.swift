struct ImageTransformation: Sendable {
    /// What becomes of the downloaded image, itself if it stays; nil: the load ends without one (`transformDownloadedImage:`).
    var transform: (@Sendable (ImageBody, ImageInfo) -> ImageBody?)?
    /// Converts it to the bytes on disk; nil keeps them (`cacheSerializer`).
    var serialize: (@Sendable (ImageBody, ImageInfo) -> [UInt8]?)?
}
