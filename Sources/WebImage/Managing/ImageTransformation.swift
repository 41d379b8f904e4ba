struct ImageTransformation: Sendable {
    /// What becomes of the downloaded image, itself if it stays; nil: the load ends without one (`transformDownloadedImage:`).
    var transform: (@Sendable (ImageBody, ImageInfo) -> ImageBody?)?
    /// Converts it to the bytes on disk; nil keeps them (`cacheSerializer`).
    var serialize: (@Sendable (ImageBody, ImageInfo) -> [UInt8]?)?

    /// - Throws: `imageRefused` if the delegate returns no image.
    func transformed(_ body: ImageBody, _ info: ImageInfo) throws(WebImageError) -> ImageBody {
        guard let transform else { return body }
        guard let image = transform(body, info) else {
            throw WebImageError(.imageRefused, "transformDownloadedImage returned no image")
        }
        return image
    }
}
