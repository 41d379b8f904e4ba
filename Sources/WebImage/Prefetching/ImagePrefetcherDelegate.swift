/// Observes a prefetcher (SDWebImagePrefetcherDelegate), in this process or over several. Calls for one list are sequential, from the task
/// that runs or follows it; calls for different lists may be concurrent. Both methods are optional.
public protocol ImagePrefetcherDelegate: AnyObject, Sendable {
    /// Called for every ended URL, with or without an image, after the progress closure.
    /// - Parameters:
    ///   - imagePrefetcher: the prefetcher.
    ///   - url: the URL that ended.
    ///   - finishedCount: number of ended URLs of its list, including this one.
    ///   - totalCount: length of its list, including duplicates.
    func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didPrefetch url: String, finishedCount: Int, totalCount: Int)

    /// Called once for a nonempty list, before the completion closure. As in SDWebImage, an ``ImagePrefetcher`` does not call it for a
    /// cancelled list; a list run by other processes does, with its open URLs as skipped.
    /// - Parameters:
    ///   - imagePrefetcher: the prefetcher.
    ///   - totalCount: URLs that ended with an image.
    ///   - skippedCount: URLs that ended without one.
    func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didFinishWithTotalCount totalCount: Int, skippedCount: Int)
}

extension ImagePrefetcherDelegate {
    /// Does nothing.
    public func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didPrefetch url: String, finishedCount: Int, totalCount: Int
    ) {}

    /// Does nothing.
    public func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didFinishWithTotalCount totalCount: Int, skippedCount: Int
    ) {}
}
