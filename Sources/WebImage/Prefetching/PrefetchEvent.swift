/// An event of a list, in SDWebImagePrefetcher's order: `progress` and `didPrefetch` for each ended URL, and once at the end `didFinish`
/// and `completion`. An empty list has only `completion`.
public enum PrefetchEvent: Sendable {
    /// Another URL has ended.
    case progress(finishedCount: Int, totalCount: Int)
    /// The URL and how it ended: `outcome` is nil only if a local fault of this process stopped the load. `result` has the image or the
    /// error; it is nil if another process loaded it.
    case didPrefetch(
        url: String, finishedCount: Int, totalCount: Int, outcome: PrefetchOutcome?,
        result: Result<LoadedImage, WebImageError>? = nil)
    /// All have ended: `totalCount` with an image, `skippedCount` without.
    case didFinish(totalCount: Int, skippedCount: Int)
    /// All have ended: `finishedCount` of them, `skippedCount` without an image.
    case completion(finishedCount: Int, skippedCount: Int)
}
