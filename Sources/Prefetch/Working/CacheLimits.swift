/// Limits of a worker's cache. Without a limit nothing is ever removed.
public struct CacheLimits: Sendable, Equatable {
    /// Seconds after which an image is removed; nil: never.
    public var maxAge: Double?
    /// Bytes that all images may use on the disk: above 95 % of it the oldest are removed, down to 90 %. Nil: unlimited.
    public var maxSize: Int?
    /// Bytes of the disk that have to stay free, or the worker pauses as for a full disk; nil: none.
    public var minFree: Int?

    /// Limits; by default none.
    public init(maxAge: Double? = nil, maxSize: Int? = nil, minFree: Int? = nil) {
        self.maxAge = maxAge
        self.maxSize = maxSize
        self.minFree = minFree
    }

    var highWater: Int? { maxSize.map { $0 / 100 * 95 + $0 % 100 * 95 / 100 } }
    var lowWater: Int? { maxSize.map { $0 / 100 * 90 + $0 % 100 * 90 / 100 } }
    /// How often old images are searched: every tenth of their maximum age, within a minute and an hour.
    var interval: Duration? { maxAge.map { .seconds(min(3600, max(60, $0 / 10))) } }
    var isEmpty: Bool { self == CacheLimits() }
}
