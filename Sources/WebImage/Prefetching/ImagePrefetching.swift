/// Whoever prefetches lists of URLs and tells an ``ImagePrefetcherDelegate``: ``ImagePrefetcher`` in this process, or a prefetcher whose
/// workers are other processes. One delegate can follow both.
public protocol ImagePrefetching: AnyObject, Sendable {
    /// Who follows every list; not retained.
    var delegate: (any ImagePrefetcherDelegate)? { get set }
    /// How many lists have neither ended nor been cancelled.
    var runningTokenCount: Int { get }
    /// Cancels every list.
    func cancelPrefetching() async throws
}
