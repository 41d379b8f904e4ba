/// A prefetcher of URL lists with an ``ImagePrefetcherDelegate``: ``ImagePrefetcher`` in this process, or a prefetcher whose workers are
/// other processes. One delegate can serve both.
public protocol ImagePrefetching: AnyObject, Sendable {
    /// The delegate of every list; not retained.
    var delegate: (any ImagePrefetcherDelegate)? { get set }
    /// Number of lists that have neither ended nor been cancelled.
    var runningTokenCount: Int { get }
    /// Cancels every list.
    func cancelPrefetching() async throws
}
