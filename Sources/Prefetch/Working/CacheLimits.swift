/// What a worker's cache may hold. Without a limit nothing is ever removed.
public struct CacheLimits: Sendable, Equatable {
    /// Seconds after which an image goes; nil: never.
    public var maxAge: Double?
    /// Bytes that all images may take of the disk: beyond 95 % of it the oldest go, down to 90 %. Nil: any number.
    public var maxSize: Int?
    /// Bytes of the disk that have to stay free, or the worker pauses as for a full disk; nil: none.
    public var minFree: Int?

    /// Limits; by default none.
    public init(maxAge: Double? = nil, maxSize: Int? = nil, minFree: Int? = nil) {
        self.maxAge = maxAge
        self.maxSize = maxSize
        self.minFree = minFree
    }

    /// Where sweeping begins.
    var highWater: Int? { maxSize.map { $0 / 100 * 95 + $0 % 100 * 95 / 100 } }
    /// Where it ends.
    var lowWater: Int? { maxSize.map { $0 / 100 * 90 + $0 % 100 * 90 / 100 } }
    /// How often old images are looked for: a tenth of their age, but not all the time and not never.
    var interval: Duration? { maxAge.map { .seconds(min(3600, max(60, $0 / 10))) } }
    var isEmpty: Bool { self == CacheLimits() }
}
