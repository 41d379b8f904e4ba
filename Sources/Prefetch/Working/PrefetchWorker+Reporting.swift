internal import Redis
internal import Threading
internal import WebImage

extension PrefetchWorker {
    /// Reports in groups: when a job has ended, and every second.
    func reportLoop() async {
        while !Task.isCancelled {
            await jobs.reports.wait(atMost: .seconds(1))
            // What ends within the next moment goes in the same round trip; the last URLs of all do not wait.
            if jobs.openCount > 0 { try? await Task.sleep(for: .milliseconds(25)) }
            await reportAll(through: queue)
        }
    }

    /// Reports everything that is known. Effects in this order: files durable, then counted.
    ///
    /// * `isLast`: also what Redis did not take a moment ago.
    func reportAll(through queue: PrefetchQueue, isLast: Bool = false) async {
        // With the gate closed nothing may come any more that would be reported.
        if syncHasFailed, await !sync() { return }
        // One group a call for each registration: after a loss the old jobs are not owned any more, but their outcomes count.
        let ready = jobs.reportable().filter { isLast || refused.isDue($0.run.claim.batch) }
        guard !ready.isEmpty else { return }
        // A hit too: another process may have published its file a moment ago and died before it was written out.
        let needsSync = ready.contains { _, run in
            batches[run.claim.batch]?.options.durability != "none"
                && run.unreported.contains { !$0.outcome.isSkipped }
        }
        if needsSync, await !sync() { return }
        let reports = ready.map { _, run in
            PrefetchQueue.Report(
                job: run.claim.job.name, batch: run.claim.batch, base: run.claim.job.base,
                count: run.claim.job.entries.count, isFinal: run.open <= 0, settled: run.unreported,
                keepDetails: batches[run.claim.batch]?.keepDetails ?? 0,
                lapse: (batches[run.claim.batch]?.options ?? BatchOptions()).lapse)
        }
        let worker = name
        let history = configuration.history
        let number = history?.sent(worker, reports) ?? 0
        // What ended with open URLs goes back without blame.
        var unfinished: [(id: Int, run: JobRun)] = []
        do throws(RedisError) {
            let (answers, server) = try await queue.report(
                reports, worker: worker, cache: cache, namesServer: history != nil)
            history?.confirmed(worker, number, server: server, reports, answers)
            redisAnswers()
            for ((id, run), answer) in zip(ready, answers) {
                count(answer.first, of: run, as: worker)
                // Not taken: known and unreported still, until it is.
                if answer.refusal != nil { continue }
                if answer.isOver { batches[run.claim.batch]?.over.open() }
                jobs.didReport(id, count: run.unreported.count, isFinal: run.open <= 0)
                if run.mustGoBack { unfinished.append((id, run)) }
            }
            note(answers, of: ready.map(\.run.claim.batch))
            try await giveBack(unfinished, as: worker, through: queue)
        } catch {
            // Known and unreported still: the next call sends it again, or the lease runs out and it is a hit for others.
            if error.code != .interrupted { redisFails(error) }
            return
        }
        jobs.room.ring()
        forgetBatches()
    }

    /// Remembers whose reports Redis took, and whose have to wait.
    private func note(_ answers: [PrefetchQueue.Answer], of batches: [BatchIdentity]) {
        let failed = Set(zip(batches, answers).filter { $1.refusal != nil }.map(\.0))
        for batch in Set(batches) {
            if failed.contains(batch) { refused.refuse(batch) } else { refused.accept(batch) }
        }
    }

    /// Puts jobs whose open URLs nobody here will end back on their lists.
    private func giveBack(
        _ unfinished: [(id: Int, run: JobRun)], as worker: String, through queue: PrefetchQueue
    ) async throws(RedisError) {
        // What was claimed under an earlier name went back when that was reaped.
        let own = unfinished.filter { $0.run.worker == worker }
        if !own.isEmpty {
            try await queue.release(worker: worker, jobs: own.map { $0.run.claim.name }, leaving: false)
            configuration.history?.released(worker, own.map { $0.run.claim.job.name })
        }
        for (id, _) in unfinished { jobs.didGiveBack(id) }
    }

    /// * `worker`: the name under which it was reported.
    private func count(
        _ first: [(position: Int, outcome: PrefetchOutcome)], of run: JobRun, as worker: String
    ) {
        var mine = run.unreported
        // Most reports are the first of all they say.
        if first.count < mine.count {
            let positions = Set(first.map(\.position))
            mine.removeAll { !positions.contains($0.position) }
        }
        for item in mine {
            totals[item.outcome] += 1
            totals.bytes += item.bytes
            guard worker == name else { continue }
            ownTotals[item.outcome] += 1
            ownTotals.bytes += item.bytes
        }
        hosts.add(mine, of: run.claim.job)
    }

    /// One sync for all files that may not be on the disk yet, whoever published them; none where there are no such files. False where the disk fails, and then nothing may be counted.
    private func sync() async -> Bool {
        let cache = manager.cache.disk
        do throws(WebImageError) {
            try await pool.run { () throws(WebImageError) in _ = try cache.syncPending() }
            if syncHasFailed {
                syncHasFailed = false
                if fault.reopen() { configuration.onEvent(.resumed) }
            }
            return true
        } catch {
            // The kernel tells of a failed write once and forgets it; the next call succeeds, whatever became of the bytes. So what was
            // written since the last success is fetched again.
            let lost = jobs.takeBackDownloads()
            let keys = lost.map { CacheKey(batches[$0.batch]?.keyRule.key(for: $0.entry.url) ?? $0.entry.url) }
            await pool.run { for key in keys { _ = try? cache.remove(key) } }
            // The report loop tries again every second, and opens the gate that it has closed.
            if fault.close(error.message) {
                syncHasFailed = true
                configuration.onEvent(.paused(error.message))
            }
            return false
        }
    }

    /// Contexts of batches without a job here are dropped, so that a worker that lives for months does not grow.
    private func forgetBatches() {
        guard batches.count > 64 else { return }
        let used = jobs.batches
        batches = batches.filter { used.contains($0.key) }
    }
}
