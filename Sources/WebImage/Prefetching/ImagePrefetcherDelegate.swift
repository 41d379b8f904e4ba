/// Follows a prefetcher (SDWebImagePrefetcherDelegate), of this process or of many. The calls of one list come one after the other, from
/// the task that runs or follows it; those of two lists may come at the same time. Both methods may be left out.
public protocol ImagePrefetcherDelegate: AnyObject, Sendable {
    /// Called for every URL that ended, with an image or without, after the progress closure.
    /// - Parameters:
    ///   - imagePrefetcher: who prefetches.
    ///   - url: the URL that ended.
    ///   - finishedCount: how many of its list have ended, this one included.
    ///   - totalCount: the length of its list, duplicates included.
    func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didPrefetch url: String, finishedCount: Int, totalCount: Int)

    /// Called once for a list that is not empty, before the completion closure. An ``ImagePrefetcher`` does not call it for a list that was
    /// cancelled, as the original; a list of other processes has its end all the same, with its open URLs as skipped.
    /// - Parameters:
    ///   - imagePrefetcher: who prefetched.
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
