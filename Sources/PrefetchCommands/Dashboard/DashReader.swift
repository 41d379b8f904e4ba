internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

struct DashReading: Sendable {
    var snapshot: BatchSnapshot?
    /// The other batches; nil if not read this time.
    var queue: QueueSnapshot?
    var ends: [String: DashState.WorkerEnd] = [:]
    var failures: [Int: FailureDetail] = [:]
}

/// Reads the dashboard's data: one script for the batch each time, one for the other batches every two seconds, and a few commands for the
/// view. The cost does not grow with the number of URLs.
struct DashReader: Sendable {
    struct ReadingRequest: Sendable {
        var id: String?
        var wantsFailures = false
        var ended: Set<String> = []
    }

    /// Interval of reading the other batches; the most worker ends, and details of skipped URLs, per reading.
    private static let (pause, maxEnds, maxFailures) = (Duration.seconds(2), 16, 24)

    let queue: PrefetchQueue
    private let present = Locked<Set<String>>([])
    private let lastBrowse = Locked<(at: ContinuousClock.Instant, newest: String?)?>(nil)

    /// An unreachable Redis is reported, not waited for.
    init(_ queue: PrefetchQueue) {
        var queue = queue
        queue.redis.waitLimit = .zero
        self.queue = queue
    }

    func read(_ wish: ReadingRequest) async throws(RedisError) -> DashReading {
        var reading = DashReading()
        let now = ContinuousClock.now
        if lastBrowse.withLock({ last in last.map { now - $0.at >= Self.pause } ?? true }) {
            let snapshot = try await queue.views.snapshot(newest: 12)
            reading.queue = snapshot
            let newest = snapshot.batches.first?.id
            lastBrowse.withLock { $0 = (now, newest) }
        }
        let newest = lastBrowse.withLock { $0?.newest }
        guard let id = wish.id ?? newest, let snapshot = try await queue.views.snapshot(of: id) else { return reading }
        reading.snapshot = snapshot
        // Including workers that came and went without a count.
        let before = present.withLock { present in
            defer { present = Set(snapshot.workers.keys) }
            return present
        }
        let unknown = before.union(snapshot.counts.keys).filter {
            snapshot.workers[$0] == nil && !wish.ended.contains($0)
        }
        for (name, end) in try await queue.workerRecords.ends(ofWorkers: Array(unknown.sorted().prefix(Self.maxEnds))) {
            reading.ends[name] = DashState.WorkerEnd(
                isLost: end.state != .left, ended: end.ended, returned: end.returned)
        }
        if wish.wantsFailures, snapshot.status.counts.skipped > 0 {
            reading.failures = try await queue.results.someFailures(of: id, most: Self.maxFailures)
        }
        return reading
    }
}
