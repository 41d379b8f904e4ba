internal import Threading

/// The failed URLs of one process (SDWebImageManager's `failedURLs`): without `retryFailed` they are not asked again.
public final class FailedURLs: Sendable {
    private let urls = Locked(Set<String>())

    init() {}

    /// How many there are.
    public var count: Int { urls.withLock { $0.count } }

    /// Whether this one failed.
    public func contains(_ url: String) -> Bool { urls.withLock { $0.contains(url) } }

    /// Adds one.
    public func insert(_ url: String) { urls.withLock { _ = $0.insert(url) } }

    /// Takes one off (removeFailedURL:).
    public func remove(_ url: String) { urls.withLock { _ = $0.remove(url) } }

    /// Takes all off (removeAllFailedURLs).
    public func removeAll() { urls.withLock { $0.removeAll() } }
}
