/// A major version of SDWebImage whose behaviour is followed where it differs from this package's own (`--compat`). docs/SDWEBIMAGE.md
/// compares them.
public enum Compatibility: String, Sendable, CaseIterable, Codable {
    /// SDWebImage 3.x.
    case sd3
    /// SDWebImage 5.x.
    case sd5

    /// Which failures are remembered: before the cache is asked, and forever.
    public var failedURLPolicy: FailedURLPolicy { self == .sd3 ? .sd3 : .sd5 }

    /// How often a URL is requested: SDWebImage never retries.
    public var maxAttempts: Int { 1 }

    /// Concurrent loads of a prefetcher, SDWebImagePrefetcher's default.
    public var maxConcurrentPrefetchCount: Int { 3 }

    /// `Accept` of its requests. Version 3 adds `image/webp` only if it is built with libwebp.
    public var accept: String { self == .sd3 ? "image/*;q=0.8" : "image/*,*/*;q=0.8" }

    /// Whether a prefetch cancels the previous one of its prefetcher, also if its list is empty.
    public var cancelsPreviousPrefetch: Bool { self == .sd3 }

    /// Whether a cancelled load calls its completion, with `cancelled`.
    public var completesCancelledLoads: Bool { self == .sd5 }

    /// Whether the delegate is called before the progress closure.
    public var callsDelegateFirst: Bool { self == .sd5 }

    /// Whether skipped URLs count in the `totalCount` of didFinish.
    public var countsSkippedInTotal: Bool { self == .sd5 }

    /// Seconds that a URL with `continueInBackground` has after the drain timeout: what iOS gave an application in the background, about
    /// 3 minutes up to iOS 12 and 30 seconds from iOS 13 on (UIApplication.backgroundTimeRemaining).
    public var backgroundTime: Double { self == .sd3 ? Self.usualBackgroundTime : 30 }

    /// ``backgroundTime`` without a version: 180 seconds.
    public static let usualBackgroundTime = 180.0
}
