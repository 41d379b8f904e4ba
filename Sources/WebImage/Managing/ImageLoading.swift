/// Whatever turns a URL into a verified image: the seam between a prefetcher and the manager below it (SDImageLoader).
public protocol ImageLoading: Sendable {
    /// Loads one image.
    /// - Throws: why there is none; `cancelled` where the task was cancelled.
    func loadImage(with url: String, options: WebImageOptions) async throws(WebImageError) -> LoadedImage

    /// The same with a jar for the cookies of `handleCookies`; a list of a prefetcher has one of its own. A loader that has no cookies
    /// need not implement it.
    func loadImage(
        with url: String, options: WebImageOptions, cookies: CookieJar
    ) async throws(WebImageError) -> LoadedImage
}

extension ImageLoading {
    /// Without cookies.
    public func loadImage(
        with url: String, options: WebImageOptions, cookies: CookieJar
    ) async throws(WebImageError) -> LoadedImage {
        try await loadImage(with: url, options: options)
    }
}
