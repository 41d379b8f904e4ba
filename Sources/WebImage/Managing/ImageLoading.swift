/// Whatever turns a URL into a verified image: the seam between a prefetcher and the manager below it (SDImageLoader).
public protocol ImageLoading: Sendable {
    /// Loads one image.
    /// - Throws: why there is none; `cancelled` where the task was cancelled.
    func loadImage(with url: String, options: WebImageOptions) async throws(WebImageError) -> LoadedImage
}
