/// What happens to a list of URLs, in SDWebImagePrefetcher's order: for each URL that ends `progress` and `didPrefetch`, at the end
/// `didFinish` and `completion`, once. An empty list has its `completion` alone.
public enum PrefetchEvent: Sendable {
    /// One more URL has ended.
    case progress(finishedCount: Int, totalCount: Int)
    /// Which one, and with what.
    case didPrefetch(url: String, finishedCount: Int, totalCount: Int, result: Result<LoadedImage, WebImageError>)
    /// All have ended: `totalCount` with an image, `skippedCount` without.
    case didFinish(totalCount: Int, skippedCount: Int)
    /// All have ended: `finishedCount` of them, `skippedCount` without an image.
    case completion(finishedCount: Int, skippedCount: Int)
}
