internal import Glibc
internal import Redis
internal import Threading
package import WebImage

/// Settles cache hits while a list is queued (`queryDiskSync`): a list that is completely cached is done when it is sealed.
///
/// Not with the policies `sd3` and `sd4`, which check the failed URLs before the cache. A faster worker would find the same.
package struct CacheHits: Sendable {
    private let disk: DiskCache
    private let cache: BatchCache
    private let options: BatchOptions
    private let policy: FailedURLPolicy
    private let rule: CacheKeyRule
    private let threads = ThreadPool(threads: 2, name: "hits")

    /// * `disk`: the cache of the batch's workers.
    package init(_ disk: DiskCache, options: BatchOptions) {
        self.disk = disk
        cache = BatchCache(disk)
        // The batch began before: what is found from now on stays until it ends.
        disk.images.markFound(since: WallClock.now)
        self.options = options
        policy = options.blacklist
        rule = CacheKeyRule(options)
    }

    /// Reports the hits of jobs that have been pushed.
    func settle(_ jobs: [PrefetchJob], of batch: BatchIdentity, in queue: PrefetchQueue) async throws(RedisError) {
        guard !policy.isCheckedBeforeCache else { return }
        let reports = await threads.run { [self] in jobs.compactMap { report($0, of: batch) } }
        for start in stride(from: 0, to: reports.count, by: 64) {
            _ = try await queue.reports.send(
                Array(reports[start..<min(start + 64, reports.count)]), worker: "submit:\(ThisHost.nameAndPID)",
                cache: cache)
        }
    }

    private func report(_ job: PrefetchJob, of batch: BatchIdentity) -> QueueReports.Report? {
        var settled: [SettledEntry] = []
        for (position, entry) in job.entries.enumerated() where isAsked(entry) {
            guard let key = try? rule.key(for: entry.url, entry.settings),
                let found = try? disk.images.find(CacheKey(key), atLeast: options.validate), !found.needsVerification
            else { continue }
            settled.append(SettledEntry(position: position, outcome: .hit))
        }
        guard !settled.isEmpty else { return nil }
        return QueueReports.Report(
            job: job.name, batch: batch, base: job.base, count: job.entries.count, isFinal: false,
            settled: settled, keepDetails: 0)
    }

    /// Whether `queryDiskSync` applies to an entry, and the presence in the cache decides.
    private func isAsked(_ entry: PrefetchJob.Entry) -> Bool {
        let all = options.options.union(entry.settings?.options ?? [])
        return !entry.isInvalid && all.contains(.queryDiskSync) && !all.revalidatesHits && options.rules.isEmpty
            && entry.settings?.revalidatesHits != true
    }
}
