// What its owner may have put around an image.
extension ImageManager {
    /// The download with the image itself as its body.
    func opened(_ download: DownloadedImage, of url: String) throws(WebImageError) -> DownloadedImage {
        guard let decryptor = configuration.decryptor else { return download }
        guard let bytes = decryptor(download.body, url) else {
            throw WebImageError(.badImageData, "the decryptor made nothing of the bytes")
        }
        var download = download
        download.body = ImageBody(bytes)
        return download
    }
}
