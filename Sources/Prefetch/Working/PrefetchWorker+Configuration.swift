public import WebImage

extension PrefetchWorker {
    /// Settings of a worker.
    public struct Configuration: Sendable {
        /// Milliseconds without a heartbeat until others may take its jobs; 15,000 by default, at least 1,000.
        public var lease = 15_000
        /// Transfers in flight, 32 by default, until it is told otherwise (`prefetch-coord workers set`). The downloader it is given
        /// must have the same number.
        public var maxConcurrentDownloads = 32
        /// What it has at most, whatever it is told: more do not fit into its limit of open files.
        package var mostConcurrentDownloads = Int.max
        /// Leave with the counts when no batch is running any more; otherwise wait for the next one for ever.
        public var burst = false
        /// Seconds that transfers in flight have after ``PrefetchWorker/drain()``, 25 by default.
        public var drainTimeout: Double = 25
        /// The least an image is checked, whatever its batch asks.
        public var minimumLevel = ValidationLevel.none
        /// Bytes of the largest image it takes, whatever its batch asks; 4 GiB by default, which is also the most there is.
        public var maxImageBytes = 4 << 30
        /// What the cache may hold; nothing is removed by default.
        public var cacheLimits = CacheLimits()
        /// Bytes of images a second that all workers of the queue may take together, each what it needs of them; nil (no limit) by default.
        public var limitRateOfQueue: Int?
        /// What the worker is called in Redis: `host:pid` by default.
        public var name = ""
        /// Hears what a person wants to know while it runs.
        public var onEvent: @Sendable (Event) -> Void = { _ in }
        /// Keeps what it did, for `fsck --history`; nil: nobody does.
        package var history: HistoryLog?

        /// The defaults.
        public init() {}
    }

    /// What a person wants to know of a running worker.
    public enum Event: Sendable, Equatable {
        /// Registered under this name.
        case joined(String)
        /// Redis is away, full or refuses, with the reason; it waits.
        case redisAway(String)
        /// Redis answers again.
        case redisBack
        /// Something in Redis is not what it must be; everything else goes on. Said once.
        case complaint(String)
        /// Its jobs were taken back because no heartbeat of it came for a lease; it goes on under a new name.
        case lost(String)
        /// Something here is broken (disk full, no network): nothing ends until it is mended.
        case paused(String)
        /// It is mended.
        case resumed
        /// The disk of its cache has not answered for three leases, so its jobs went back; or it answers again.
        case held(Bool)
        /// Told to claim nothing until it is told otherwise, or that it may go on.
        case halted(Bool)
        /// Told how many transfers it may have in flight.
        case concurrency(Int)
        /// A host was refused by the address policy, once per host.
        case refused(host: String, message: String)
    }
}
