/// What happens to a list of URLs, in SDWebImagePrefetcher's order: for each URL that ends `progress` and `didPrefetch`, at the end
/// `didFinish` and `completion`, once. An empty list has its `completion` alone.
public enum PrefetchEvent: Sendable {
    /// One more URL has ended.
    case progress(finishedCount: Int, totalCount: Int)
    /// Which one, and how it ended: `outcome` is nil only where a local fault of this process stopped the load. `result` has the image or
    /// the error; it is nil where another process loaded it.
    case didPrefetch(
        url: String, finishedCount: Int, totalCount: Int, outcome: PrefetchOutcome?,
        result: Result<LoadedImage, WebImageError>? = nil)
    /// All have ended: `totalCount` with an image, `skippedCount` without.
    case didFinish(totalCount: Int, skippedCount: Int)
    /// All have ended: `finishedCount` of them, `skippedCount` without an image.
    case completion(finishedCount: Int, skippedCount: Int)
}
