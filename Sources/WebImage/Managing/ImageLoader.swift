/// Loads the bytes of some images in another way than the downloader does (SDWebImageDownloader's `operationClass`, SDImageLoader): from a
/// file, a database, another protocol. A program with several kinds of them has one loader that chooses.
public protocol ImageLoader: Sendable {
    /// Whether it loads the image of a URL, of any scheme.
    func canRequestImage(for url: String) -> Bool

    /// Loads the bytes of an image, which are then verified and stored as downloaded ones are.
    /// - Parameters:
    ///   - url: the URL as given, byte for byte.
    ///   - options: those of the load.
    ///   - progress: to be called with the received and the expected bytes, 0 if unknown; calling it is optional.
    /// - Returns: all bytes.
    /// - Throws: why there is no image; `cancelled` if the task was cancelled.
    func requestImage(
        for url: String, options: WebImageOptions,
        progress: @Sendable (_ receivedBytes: Int, _ expectedBytes: Int) -> Void
    ) async throws(WebImageError) -> [UInt8]

    /// Whether a URL that failed goes onto the blacklist, unless the delegate decides. Optional; nil (default): the policy decides.
    func shouldBlockFailedURL(_ url: String, with error: WebImageError) -> Bool?
}

extension ImageLoader {
    /// Returns nil.
    public func shouldBlockFailedURL(_ url: String, with error: WebImageError) -> Bool? { nil }

    /// The loader itself, if it loads the image of a URL; nil: the downloader does.
    func loader(of url: String) -> (any ImageLoader)? { canRequestImage(for: url) ? self : nil }

    /// Loads the bytes for a request, with the calls and the tries of a download.
    nonisolated(nonsending) func download(
        _ url: String, _ request: LoadRequest
    ) async throws(WebImageError) -> DownloadedImage {
        request.progress?(0, -1)
        do throws(WebImageError) {
            let bytes = try await requestImage(for: url, options: request.options) { request.progress?($0, $1) }
            return DownloadedImage(loaded: bytes, from: url, tries: 1)
        } catch {
            var error = error
            error.tries = max(1, error.tries)
            throw error
        }
    }
}

extension DownloadedImage {
    /// Nil if there was no response.
    var status: Int? { statusCode == 0 ? nil : statusCode }

    /// The bytes of a loader, without a response.
    init(loaded bytes: [UInt8], from url: String, tries: Int) {
        self.init(
            body: ImageBody(bytes), statusCode: 0, effectiveURL: url, redirectCount: 0, tries: tries,
            remoteAddress: "", timing: Timing(), httpVersion: "", lengthWasAnnounced: true)
    }
}
