/// A major version of SDWebImage whose behaviour is followed where it differs from this package's own (`--compat`): a prefetch also cancels
/// the previous one of its prefetcher or slot, and what is cancelled calls no completion. docs/SDWEBIMAGE.md has all differences.
public enum Compatibility: String, Sendable, CaseIterable {
    /// SDWebImage 3.x.
    case sd3

    /// Which failures are remembered: before the cache is asked, and forever.
    public var failedURLPolicy: FailedURLPolicy { .sd3 }

    /// How often a URL is requested: SDWebImage never retries.
    public var maxTries: Int { 1 }

    /// Concurrent loads of a prefetcher, SDWebImagePrefetcher's default.
    public var maxConcurrentPrefetchCount: Int { 3 }

    /// `Accept` of its requests. It adds `image/webp` only if it is built with libwebp.
    public var accept: String { "image/*;q=0.8" }
}
