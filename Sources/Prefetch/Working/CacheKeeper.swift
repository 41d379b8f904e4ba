internal import Threading
internal import WebImage

/// Keeps a worker's cache within its limits, and sweeps of others from what its batches fetched.
final class CacheKeeper: Sendable {
    /// What a look at the cache said.
    enum Finding: Sendable {
        /// There is room.
        case room
        /// As much as the limit allows; whether a sweep of this worker's own could not change that, with what failed.
        case full(isSwept: Bool, error: String?)
        /// The disk has less room than it must have.
        case low(String)
    }

    /// Closed while the cache is full: nothing new begins, which is no fault as long as somebody sweeps.
    let room = FaultGate()
    /// Rings when somebody has found it full.
    let bell = Bell()
    let limits: CacheLimits
    private let disk: DiskCache
    /// Sweeps block for long; the worker's own threads have images to verify.
    private let threads: ThreadPool?
    private let protection = Locked<CacheProtection?>(nil)
    private let batches = Locked<[String: Double]>([:])
    private let leaving = Locked<ContinuousClock.Instant?>(nil)
    private let lastSweep = Locked<ContinuousClock.Instant?>(nil)
    /// Before that another sweep for the size would most likely remove nothing again.
    private let rest = Locked<ContinuousClock.Instant?>(nil)

    init(_ disk: DiskCache, limits: CacheLimits) {
        self.disk = disk
        self.limits = limits
        threads = limits.isEmpty ? nil : ThreadPool(threads: 1, name: "sweep")
    }

    /// Whether another image may come: by the account, without a system call; one statvfs(2) where room of the disk is asked for.
    var hasRoom: Bool {
        if let maxSize = limits.maxSize, let size = disk.account.totals?.size, size >= maxSize { return false }
        if let minFree = limits.minFree, let free = disk.account.freeSize, free < minFree { return false }
        return true
    }

    /// Returns when the cache has room for another image, or `end` is open, or the task is cancelled.
    nonisolated(nonsending) func waitForRoom(orUntil end: Latch) async {
        while !hasRoom && !end.isOpen && !Task.isCancelled {
            noteFull()
            // After the close: the loop looks once more, and opens what was closed too late.
            bell.ring()
            await room.wait()
        }
    }

    /// Nothing that stores an image begins until there is room.
    func noteFull() { room.close("the cache is full") }

    /// Whether a sweep has to end: a worker that leaves gives it two seconds, one that stops none.
    func isOver(isLeaving: Bool, isStopping: Bool) -> Bool {
        guard isLeaving else { return false }
        let since = leaving.withLock { leaving in
            let since = leaving ?? .now
            leaving = since
            return since
        }
        return isStopping || .now - since > .seconds(2)
    }

    /// Looks, and sweeps where that is due.
    func look(isOver: @escaping @Sendable () -> Bool) async -> Finding {
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
                    // A cache of a million images takes seconds to look through: a fifth of the time at most.
                    let isFutile = report.evicted.count == 0 && isLarge
                    rest.withLock { $0 = isFutile ? now + (now - began) * 4 : nil }
                }
            }
            guard let maxSize = limits.maxSize, let size = disk.account.totals?.size, size >= maxSize else {
                return .room
            }
            return .full(isSwept: isSwept, error: nil)
        } catch {
            // It is full for as long as nobody can remove anything; until then, whoever stores complains of a broken disk.
            return hasRoom ? .room : .full(isSwept: error.code != .cancelled, error: error.message)
        }
    }

    /// What to say where the batches themselves are larger than the limit.
    func tooSmall(_ error: String?) -> String {
        if let error { return error }
        return
            "cache too small: what the running batches fetched fills --cache-max-size \(limits.maxSize ?? 0) of the cache "
            + "\(disk.directory); raise it, or make smaller batches"
    }

    // MARK: What must stay

    /// The batches whose images are protected.
    var protectedBatches: [String] { batches.withLock { Array($0.keys) } }

    /// Protects what was fetched since a batch began, seconds since 1970 by this machine's clock, until ``release(_:)``.
    func protect(_ batch: String, since: Double) {
        batches.withLock { batches in batches[batch] = min(since, batches[batch] ?? since) }
        mark()
    }

    /// The batches have ended.
    func release(_ ended: [String]) {
        guard !ended.isEmpty else { return }
        batches.withLock { batches in for batch in ended { batches[batch] = nil } }
        mark()
    }

    /// A cache where this cannot be written complains when an image is to be stored.
    private func mark() {
        let since = batches.withLock { $0.values.min() }
        let known = protection.withLock { $0 }
        guard let mark = known ?? (try? CacheProtection(disk)) else { return }
        if known == nil { protection.withLock { $0 = mark } }
        try? mark.set(since: since)
    }
}
