/// What a manager's owner makes of an image's bytes before they are stored.
struct ImageRework: Sendable {
    /// Makes another image of what was downloaded, or nil to leave it (`transformDownloadedImage:`).
    var transform: (@Sendable (ImageBody, ImageInfo) -> [UInt8]?)?
    /// Makes the bytes on disk, or nil to leave them (`cacheSerializer`).
    var serialize: (@Sendable (ImageBody, ImageInfo) -> [UInt8]?)?
}
