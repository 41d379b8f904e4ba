internal import Redis
internal import Threading
internal import WebImage

/// Reports outcomes in groups: when a job has ended, and every second. Files are made durable before they are counted.
///
/// Confined to the worker's executor.
final class ReportLoop {
    private let worker: WorkerContext
    /// The cache with the images of its reports.
    let cache: BatchCache
    private var refused = RefusedReports()
    private var syncPause = BackOff(first: .milliseconds(500))
    /// Requests to hosts since the last report; the unconfirmed report, with its token; number of tokens so far.
    private var hosts = HostTally()
    private var unconfirmedTally: (hosts: HostTally, token: String)?
    private var tallies = 0
    /// The batches whose URLs it had when something else than the work began to hold the worker.
    private var lastBatches: Set<String> = []
    /// The first part of its tokens: a later process may have the same name.
    private let tallyName = String(UInt64.random(in: .min ... .max), radix: 36)

    init(_ worker: WorkerContext) {
        self.worker = worker
        cache = BatchCache(worker.manager.cache.disk)
    }

    /// Whether Redis refused the last report of any batch.
    var hasRefused: Bool { !refused.isEmpty }

    nonisolated(nonsending) func run() async {
        let jobs = worker.jobs
        while !Task.isCancelled {
            await jobs.reports.wait(atMost: .seconds(1))
            // Outcomes of the next moment share the round trip; the very last URLs do not wait.
            if jobs.openCount > 0 { try? await Task.sleep(for: .milliseconds(25)) }
            await reportAll(through: worker.redis.queue)
        }
    }

    /// Last report before the worker leaves: sends all outcomes and gives its jobs back.
    nonisolated(nonsending) func end() async {
        var last = worker.redis.queue
        last.redis.waitLimit = .seconds(2)
        await reportAll(through: last, isLast: true)
        do throws(RedisError) {
            try await tellHosts(through: last)
        } catch {
            // Refused figures must not keep the jobs from going back; an unreachable Redis takes neither.
            guard error.code == .reply else { return }
            worker.warningLog.say(error.message)
        }
        let name = worker.registration.name
        do throws(RedisError) {
            try await last.jobs.release(worker: name, leaving: true)
        } catch {
            // Redis is unreachable: the lease expires and the jobs are reaped.
        }
    }

    // MARK: Outcomes

    /// Reports all known outcomes.
    /// * `isLast`: including those that Redis has just refused.
    private nonisolated(nonsending) func reportAll(through queue: PrefetchQueue, isLast: Bool = false) async {
        var ready = reportable(isLast: isLast)
        if syncPause.isRunning || ready.contains(where: \.needsSync), await !sync() {
            // Images are open again; jobs go back, and what was skipped has no file.
            ready = reportable(isLast: isLast).filter { !$0.needsSync }
        }
        guard !ready.isEmpty else { return }
        let reports = ready.map { _, run, context, _ in
            QueueReports.Report(
                job: run.claim.job.name, batch: run.claim.batch, base: run.claim.job.base,
                count: run.claim.job.entries.count, isFinal: run.open <= 0, settled: run.unreported,
                keepDetails: context?.keepDetails ?? 0, ttl: (context?.options ?? BatchOptions()).listingTTL)
        }
        let name = worker.registration.name
        let call = worker.redis.calls.begin()
        defer { worker.redis.calls.end(call) }
        // Jobs that ended with open URLs go back without counting a delivery.
        var unfinished: [(id: Int, run: JobRun)] = []
        do throws(RedisError) {
            let answers = try await queue.reports.send(reports, worker: name, cache: cache)
            worker.redis.answers()
            for ((id, run, context, _), answer) in zip(ready, answers) {
                count(answer.first, of: run)
                // Refused: stays unreported.
                if answer.refusal != nil { continue }
                if answer.isOver { context?.over.open() }
                worker.jobs.didReport(id, count: run.unreported.count, isFinal: run.open <= 0)
                if run.mustReturn { unfinished.append((id, run)) }
            }
            note(answers, of: ready.map(\.run.claim.batch))
            try await giveBack(unfinished, as: name, through: queue)
        } catch {
            // Stays unreported: the next call sends it again, or the lease expires and it is a hit for others.
            if error.code != .interrupted { worker.redis.fails(error) }
            return
        }
        worker.jobs.room.ring()
        worker.batches.forget(allBut: worker.jobs.batches)
    }

    private typealias Reportable = (id: Int, run: JobRun, context: BatchContext?, needsSync: Bool)

    private func reportable(isLast: Bool) -> [Reportable] {
        worker.jobs.reportable().filter { isLast || refused.isDue($0.run.claim.batch) }.map { id, run in
            let context = worker.batches[run.claim.batch]
            // For hits too: another process may have published the file a moment ago and died before it was synced.
            let needsSync =
                context?.options.durability != Durability.none && run.unreported.contains { !$0.outcome.isSkipped }
            return (id, run, context, needsSync)
        }
    }

    /// Records which batches' reports Redis accepted, and which have to wait.
    private func note(_ answers: [QueueReports.Answer], of batches: [BatchIdentity]) {
        let failed = Set(zip(batches, answers).filter { $1.refusal != nil }.map(\.0))
        for batch in Set(batches) {
            if failed.contains(batch) { refused.refuse(batch) } else { refused.accept(batch) }
        }
    }

    /// Returns jobs whose open URLs this worker will not end to their lists.
    private nonisolated(nonsending) func giveBack(
        _ unfinished: [(id: Int, run: JobRun)], as name: String, through queue: PrefetchQueue
    ) async throws(RedisError) {
        // Claims under an earlier name went back when that was reaped.
        let own = unfinished.filter { $0.run.worker == name }
        if !own.isEmpty {
            try await queue.jobs.release(
                worker: name, jobs: own.map { $0.run.claim.name },
                doubted: Set(texts: own.filter(\.run.isDoubted).map { $0.run.claim.name }), leaving: false)
        }
        for (id, _) in unfinished { worker.jobs.didReturn(id) }
    }

    private func count(_ first: [(position: Int, outcome: PrefetchOutcome)], of run: JobRun) {
        var mine = run.unreported
        // In most reports all outcomes are first.
        if first.count < mine.count {
            let positions = Set(first.map(\.position))
            mine.removeAll { !positions.contains($0.position) }
        }
        worker.registration.count(mine)
        hosts.add(mine, of: run.claim.job)
    }

    // MARK: The disk

    /// One sync for all files of any process that may not be on the disk yet. False if the disk fails, or did so the last time: then the
    /// images that wait for it are open again. The kernel reports a failed write once, then forgets it, so a later success says nothing of them.
    private nonisolated(nonsending) func sync() async -> Bool {
        if !syncPause.isRunning, await writeOut() { return true }
        let lost = worker.jobs.reopenDownloads()
        if !lost.isEmpty {
            let (cache, keys) = (
                worker.manager.cache.disk, lost.compactMap { worker.batches.key(of: $0.entry, in: $0.batch) }
            )
            await worker.manager.pool.run { for key in keys { _ = try? cache.images.remove(key) } }
        }
        if syncPause.isDue() { _ = await writeOut() }
        return false
    }

    private nonisolated(nonsending) func writeOut() async -> Bool {
        let cache = worker.manager.cache.disk
        do throws(WebImageError) {
            try await worker.manager.pool.run { () throws(WebImageError) in _ = try cache.syncPending() }
            syncPause.succeed()
            worker.faults.gate.reopen(.sync)
            return true
        } catch {
            syncPause.fail(jitter: BackOff.jitter)
            worker.faults.gate.close(error.message, by: .sync)
            return false
        }
    }

    // MARK: Hosts

    /// Counts time in which a cause held the worker back, for the batches whose URLs it has. While a person or a fault holds it, its jobs
    /// are back in the queue: the time counts for the batches that it had before.
    func count(_ cause: LimitCause, milliseconds: Int) {
        let present = Set(worker.jobs.batches.map(\.id))
        switch cause {
        case .paused, .fault, .disk, .redis: if !present.isEmpty { lastBatches = present }
        default: lastBatches = present
        }
        hosts.add(cause, milliseconds: milliseconds, of: lastBatches)
    }

    /// Reports requests to hosts since the last time, if any.
    nonisolated(nonsending) func tellHosts() async {
        await worker.redis.persist { queue async throws(RedisError) in try await tellHosts(through: queue) }
    }

    /// An unconfirmed report is sent again unchanged, with its token; later figures wait.
    private nonisolated(nonsending) func tellHosts(through queue: PrefetchQueue) async throws(RedisError) {
        while true {
            if unconfirmedTally == nil {
                guard !hosts.isEmpty else { return }
                unconfirmedTally = (hosts, "\(tallyName).\(tallies)")
                (hosts, tallies) = (HostTally(), tallies + 1)
            }
            guard let (part, token) = unconfirmedTally else { return }
            try await queue.hosts.tally(part, worker: worker.registration.name, token: token)
            unconfirmedTally = nil
        }
    }
}
