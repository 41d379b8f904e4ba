public import WebImage

extension PrefetchWorker {
    /// Settings of a worker.
    public struct Configuration: Sendable {
        /// Milliseconds without a heartbeat until others may take its jobs; 15,000 by default, at least 1,000.
        public var lease = 15_000
        /// Concurrent transfers, 32 by default, until changed by `prefetch-coord set`; or `auto`. A number is a maximum; with `auto`
        /// stalled transfers do not count, as many as the downloader's `maxStalledDownloads` says. The downloader must have the same number,
        /// or that with which `auto` starts: ``ConcurrentDownloads/initial``.
        public var maxConcurrentDownloads: ConcurrentDownloads = 32
        /// The upper limit of concurrent transfers, from the limit of open files.
        package var concurrencyLimit = Int.max
        /// Whether it leaves with its counts when no batch is running any more; otherwise it waits for the next one forever.
        public var burst = false
        /// Seconds that current transfers have after ``PrefetchWorker/drain()``, 25 by default.
        public var drainTimeout: Double = 25
        /// The minimum validation of an image, whatever its batch's setting.
        public var minimumLevel = ValidationLevel.none
        /// Bytes of the largest accepted image, whatever its batch's setting; 4 GiB by default, which is also the maximum.
        public var maxImageBytes = 4 << 30
        /// Limits of the cache; nothing is removed by default.
        public var cacheLimits = CacheLimits()
        /// Bytes of images per second for all workers of the queue together, shared by need; nil (no limit) by default.
        public var limitRateOfQueue: Int?
        /// The worker's name in Redis: `host:pid` by default.
        public var name = ""
        /// Called with events for the user.
        public var onEvent: @Sendable (Event) -> Void = { _ in }
        /// Notes which URLs it decodes, for the parent process.
        package var notes: DecodeNotes.Writer?

        /// The defaults.
        public init() {}
    }

    /// An event of a running worker for the user.
    public enum Event: Sendable, Equatable {
        /// Registered under this name.
        case joined(String)
        /// Redis is unreachable, full or refuses, with the reason; the worker waits.
        case redisAway(String)
        /// Redis replies again.
        case redisBack
        /// A warning about a key or batch in Redis; the rest goes on. Sent once.
        case warning(String)
        /// Its jobs were reaped because a lease passed without a heartbeat; it goes on under a new name.
        case lost(String)
        /// A local fault (disk full, no network): nothing ends until it is repaired.
        case paused(String)
        /// The fault is repaired.
        case resumed
        /// The disk of its cache has not responded for three leases, so its jobs went back; or it responds again.
        case held(Bool)
        /// Paused by command, or resumed.
        case pausedByCommand(Bool)
        /// The number of concurrent transfers was changed by command, or is found by the worker from now on.
        case concurrency(ConcurrentDownloads)
        /// The address policy refused a host, once per host.
        case refused(host: String, message: String)
    }
}

extension ConcurrentDownloads {
    /// The number of transfers at the start: `auto` begins with 16.
    public var initial: Int { count ?? ConcurrencyController.start }
}
