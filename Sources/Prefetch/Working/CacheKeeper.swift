internal import Threading
internal import WebImage

/// Keeps a worker's cache within its limits, and protects images of running batches from sweeps of other workers.
final class CacheKeeper: Sendable {
    enum Finding: Sendable {
        case room
        /// At the limit; `isSwept`: this worker's own sweep could not change that, with its error.
        case full(isSwept: Bool, error: String?)
        /// Less free space on the disk than required.
        case low(String)
    }

    /// The batches whose images are protected.
    private struct Batches {
        /// Seconds since 1970 by this machine's clock.
        var since: [String: Double] = [:]
        /// Those that may have had hits before hits were marked.
        var unmarked: Set<String> = []
        var marks: Bool
    }

    /// Closed while the cache is full: nothing new starts, which is not a fault as long as some worker sweeps.
    let room = FaultGate()
    /// Rings when the cache was found full.
    let bell = WakeSignal()
    let limits: CacheLimits
    private let disk: DiskCache
    /// Sweeps block for long; the worker's own threads have images to verify.
    private let threads: ThreadPool?
    private let protection = Locked<CacheProtection?>(nil)
    private let batches: Locked<Batches>
    private let leaving = Locked<ContinuousClock.Instant?>(nil)
    private let lastSweep = Locked<ContinuousClock.Instant?>(nil)
    /// Until then another sweep for the size would probably remove nothing again.
    private let rest = Locked<ContinuousClock.Instant?>(nil)

    init(_ disk: DiskCache, limits: CacheLimits) {
        self.disk = disk
        self.limits = limits
        threads = limits.isEmpty ? nil : ThreadPool(threads: 1, name: "sweep")
        batches = Locked(Batches(marks: limits.maxAge != nil || limits.maxSize != nil))
    }

    /// Whether another image may be stored: from the account, without a system call; one statvfs(2) if free space is required.
    var hasRoom: Bool {
        if let maxSize = limits.maxSize, let size = disk.account.totals?.size, size >= maxSize { return false }
        if let minFree = limits.minFree, let free = disk.account.freeSize, free < minFree { return false }
        return true
    }

    /// Returns when the cache has room for another image, or `end` is open, or the permit is revoked, or the task is cancelled.
    nonisolated(nonsending) func waitForRoom(orUntil end: Latch, permit: DownloadPermit? = nil) async {
        while !hasRoom && !end.isOpen && permit?.isRevoked != true && !Task.isCancelled {
            noteFull()
            // After closing: the loop checks once more, and reopens a gate that was closed too late.
            bell.ring()
            await room.wait(for: permit)
        }
    }

    /// Stops everything that stores an image until there is room.
    func noteFull() { room.close("the cache is full", by: .room) }

    /// Whether a sweep has to end: two seconds after draining began, at once when stopping.
    func isOver(isLeaving: Bool, isStopping: Bool) -> Bool {
        guard isLeaving else { return false }
        let since = leaving.withLock { leaving in
            let since = leaving ?? .now
            leaving = since
            return since
        }
        return isStopping || .now - since > .seconds(2)
    }

    func check(isOver: @escaping @Sendable () -> Bool) async -> Finding {
        guard let threads else { return .room }
        return await threads.run { [self] in sweepWhereDue(isOver) }
    }

    private func sweepWhereDue(_ isOver: () -> Bool) -> Finding {
        if let minFree = limits.minFree, let free = disk.account.freeSize, free < minFree {
            return .low(
                "the disk of the cache \(disk.directory) has \(free) bytes free, less than --min-free \(minFree)")
        }
        do throws(WebImageError) {
            let size = limits.maxSize == nil ? 0 : try disk.account.usage().size
            let isLarge = limits.highWater.map { size > $0 } ?? false
            let isDue = limits.interval.map { interval in
                lastSweep.withLock { last in last.map { ContinuousClock.now - $0 >= interval } ?? true }
            }
            let isResting = rest.withLock { $0.map { .now < $0 } ?? false }
            var isSwept = isLarge && isResting
            if (isLarge && !isResting) || isDue == true {
                let rules = SweepRules(
                    maxAge: limits.maxAge, maxSize: limits.highWater, targetSize: limits.lowWater)
                let began = ContinuousClock.now
                if let report = try disk.sweep.run(rules, isOver: isOver) {
                    isSwept = true
                    let now = ContinuousClock.now
                    lastSweep.withLock { $0 = now }
                    // A scan of a million images takes seconds: it may use a fifth of the time at most.
                    let isFutile = report.evicted.count == 0 && isLarge
                    rest.withLock { $0 = isFutile ? now + (now - began) * 4 : nil }
                }
            }
            guard let maxSize = limits.maxSize, let size = disk.account.totals?.size, size >= maxSize else {
                return .room
            }
            return .full(isSwept: isSwept, error: nil)
        } catch {
            // A failed sweep matters only when the cache is full; before that, storing an image reports the broken disk.
            return hasRoom ? .room : .full(isSwept: error.code != .cancelled, error: error.message)
        }
    }

    /// The message if the batches themselves exceed the limit.
    func tooSmall(_ error: String?) -> String {
        if let error { return error }
        return
            "cache too small: what the running batches fetched fills --cache-max-size \(limits.maxSize ?? 0) of the cache "
            + "\(disk.directory); raise it, or make smaller batches"
    }

    // MARK: Protection

    var protectedBatches: [String] { batches.withLock { Array($0.since.keys) } }

    /// Protects images fetched or found since `since`, seconds since 1970 by this machine's clock, until ``release(_:)``.
    func protect(_ batch: String, since: Double) {
        let hasSwept = disk.sweep.hasSwept
        batches.withLock { batches in
            if hasSwept { batches.marks = true }
            if batches.since[batch] == nil, !batches.marks { batches.unmarked.insert(batch) }
            batches.since[batch] = min(since, batches.since[batch] ?? since)
        }
        mark()
    }

    func release(_ ended: [String]) {
        guard !ended.isEmpty else { return }
        batches.withLock { batches in
            for batch in ended { batches.since[batch] = nil }
            batches.unmarked.subtract(ended)
        }
        mark()
    }

    /// If this cannot be written, storing an image reports the error.
    private func mark() {
        let (since, marks, marksFound) = batches.withLock { ($0.since.values.min(), $0.marks, $0.unmarked.isEmpty) }
        disk.images.markFound(since: marks ? since : nil)
        let known = protection.withLock { $0 }
        guard let mark = known ?? (try? CacheProtection(disk)) else { return }
        if known == nil { protection.withLock { $0 = mark } }
        try? mark.set(since: since, marksFound: marksFound)
    }
}
