/// Loads URLs as verified images: the interface between a prefetcher and its manager (SDImageLoader).
public protocol ImageLoading: Sendable {
    /// Loads one image.
    /// - Throws: why the load failed; `cancelled` if the task was cancelled.
    func loadImage(with url: String, options: WebImageOptions) async throws(WebImageError) -> LoadedImage

    /// Loads with a jar for the cookies of `handleCookies`; each list of a prefetcher has its own. Optional for loaders without cookies.
    func loadImage(
        with url: String, options: WebImageOptions, cookies: CookieJar
    ) async throws(WebImageError) -> LoadedImage
}

extension ImageLoading {
    /// Ignores the jar.
    public func loadImage(
        with url: String, options: WebImageOptions, cookies: CookieJar
    ) async throws(WebImageError) -> LoadedImage {
        try await loadImage(with: url, options: options)
    }
}
