internal import Redis
internal import Threading
internal import WebImage

/// Runs a claimed job: its URLs' shared state, and the choice of those that need a transfer.
///
/// Runs on the thread pool: file calls may block.
final class JobWork: Sendable {
    let worker: WorkerContext
    let entry: JobLedger.Entry
    let batch: BatchContext
    /// The minimum validation of its images.
    let level: ValidationLevel
    /// Of its batch when it was claimed: its URLs are requested before those of a lower one.
    let priority: PrefetchPriority
    /// Revoked when the job is called back.
    let permit: DownloadPermit
    /// The name of the claim if a URL of the job may have killed a worker: it is decoded alone.
    let suspect: String?
    /// Whether its failures are reported as they are: the networks of two other workers had let it fail.
    let isBelieved: Bool
    let refusals = RefusedURLs()
    /// Whether there are other workers, which may take what this one's rules refuse.
    let hasOthers: Bool
    /// What a URL with `continueInBackground` has after the drain timeout: what iOS gave an application in the background up to iOS 12, about
    /// 3 minutes (UIApplication.backgroundTimeRemaining).
    private static let backgroundTime = Duration.seconds(180)
    private let claim: QueueJobs.Claim
    /// The worker name of the claim.
    private let claimant: String

    private init(_ entry: JobLedger.Entry, _ run: JobRun, _ batch: BatchContext, of worker: WorkerContext) {
        self.worker = worker
        self.entry = entry
        self.batch = batch
        level = max(batch.options.validate, worker.configuration.minimumLevel)
        priority = run.claim.priority
        permit = run.permit
        claim = run.claim
        claimant = run.worker
        isBelieved = claim.doubts >= 2
        hasOthers = claim.workers > 1
        suspect = claim.deliveries >= 3 || claim.marks > 0 ? claim.name : nil
    }

    /// A URL of the job, for the worker's notes.
    func suspect(at position: Int) -> DecodeNotes.Suspect {
        DecodeNotes.Suspect(claim: claim.name, position: position, worker: claimant)
    }

    /// The index in the batch of a URL of the job.
    func index(of position: Int) -> Int { claim.job.base + position }

    /// Tells that this worker could not store a URL's image; returns whose turn it is.
    nonisolated(nonsending) func unstored(at position: Int, tries: Int) async -> QueueJobs.Unstored {
        let (claim, claimant) = (claim.name, claimant)
        return await worker.redis.persist { queue async throws(RedisError) in
            try await queue.jobs.unstored(worker: claimant, claim: claim, position: position, tries: tries)
        } ?? .leave
    }

    /// Tells that this worker's own rules refuse URLs; returns those that those of all other workers refuse too.
    func refused(_ positions: Set<Int>) async -> Set<Int> {
        let (claim, claimant, rules) = (claim.name, claimant, worker.registration.rules.record)
        return await worker.redis.persist(until: worker.shutdown.drained) { queue async throws(RedisError) in
            try await queue.jobs.refused(worker: claimant, claim: claim, rules: rules, positions: positions.sorted())
        } ?? []
    }

    /// Runs a job until all its URLs have ended or the worker leaves. A job that has killed workers is split; a
    /// single URL that has killed three ends as `poison`.
    static func run(_ entry: JobLedger.Entry, _ run: JobRun, of worker: WorkerContext) async {
        let claim = run.claim
        guard let batch = await worker.batches.context(of: claim.batch) else { return entry.end() }
        if claim.deliveries >= 3 && claim.job.entries.count > 1 {
            await worker.redis.persist { queue async throws(RedisError) in
                try await queue.jobs.split(
                    worker: worker.registration.name, claim: claim, into: claim.job.split(into: 8))
            }
            return entry.forget()
        }
        let task = JobWork(entry, run, batch, of: worker)
        if claim.marks >= 3 {
            entry.settle([URLRun(task, position: 0, entry: claim.job.entries[0]).poison(marks: claim.marks)])
        } else {
            await task.race()
        }
        entry.end()
    }

    /// Runs its URLs until the batch is over, or the worker leaves and they are not to continue after that.
    private func race() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.runURLs() }
            group.addTask { await self.batch.over.wait() }
            group.addTask { await self.waitForEnd() }
            await group.next()
            group.cancelAll()
        }
    }

    /// Returns when the worker leaves: at the drain timeout, and for what continues in the background some time later, or when it is stopped.
    ///
    /// What has no transfer when the worker begins to leave, because it waits for a slot, its host, its name or its next try, is given back
    /// then, as in a pause.
    private func waitForEnd() async {
        await worker.shutdown.draining.wait()
        if !goesOn, !Task.isCancelled {
            permit.revoke()
            await worker.endRevoked()
        }
        await worker.shutdown.drained.wait()
        guard goesOn, !Task.isCancelled else { return }
        await withTaskGroup(of: Void.self) { [stopping = worker.shutdown.stopping] group in
            group.addTask { try? await Task.sleep(for: Self.backgroundTime) }
            group.addTask { await stopping.wait() }
            await group.next()
            group.cancelAll()
        }
    }

    /// Whether started URLs continue after the drain timeout.
    private var goesOn: Bool {
        batch.options.options.contains(.continueInBackground)
            || claim.job.entries.contains { $0.settings?.options.contains(.continueInBackground) == true }
    }

    /// Hits at once, listed URLs at once, the rest in turn. `FailedURLPolicy` determines the order of the first two.
    private func runURLs() async {
        var open = zip(claim.job.entries.indices, claim.job.entries).filter { claim.outcomes[$0.0] == 0 }
            .map { URLRun(self, position: $0, entry: $1) }
        var settled: [SettledEntry] = []
        takeOut(of: &open, into: &settled) { $0.invalid() }
        if batch.policy.isCheckedBeforeCache { await takeOutListed(&open, &settled) }
        takeOutCached(&open, &settled)
        if !batch.policy.isCheckedBeforeCache && batch.policy != .none { await takeOutListed(&open, &settled) }
        takeOut(of: &open, into: &settled) { $0.left() }
        if !settled.isEmpty { entry.settle(settled) }
        await withDiscardingTaskGroup { group in
            var granted = 0
            for (number, url) in open.enumerated() {
                if granted == 0 {
                    granted = min(worker.slots.step, open.count - number)
                    guard await worker.slots.acquire(granted, priority: priority, permit: permit) else {
                        entry.leave(count: open.count - number)
                        break
                    }
                    entry.begin(through: open[number + granted - 1].position)
                }
                granted -= 1
                group.addTask {
                    let doubt = await url.run()
                    url.job.worker.slots.release()
                    if let doubt { await url.settle(doubt) }
                }
            }
        }
    }

    private func takeOut(
        of open: inout [URLRun], into settled: inout [SettledEntry],
        _ ending: (URLRun) -> SettledEntry?
    ) {
        open.removeAll { url in
            guard let item = ending(url) else { return false }
            settled.append(item)
            return true
        }
    }

    /// Ends the cached URLs without a task: a hit costs microseconds. If the first are not cached, the others are checked in turn.
    private func takeOutCached(_ open: inout [URLRun], _ settled: inout [SettledEntry]) {
        // These hits are revalidated one by one.
        guard !batch.options.options.revalidatesHits, batch.images.headerRules == nil else { return }
        var looked = 0
        var hits = 0
        takeOut(of: &open, into: &settled) { url in
            guard looked < 16 || hits > 0, !url.revalidatesHit else { return nil }
            looked += 1
            let hit = url.hit()
            if hit != nil { hits += 1 }
            return hit
        }
        if hits > 0 { worker.faults.succeed(hits) }
    }

    private func takeOutListed(_ open: inout [URLRun], _ settled: inout [SettledEntry]) async {
        guard !batch.options.retryFailed, !open.isEmpty else { return }
        guard let listed = await listed(open.map(\.entry.url)) else { return }
        for (number, listing) in listed where listing.hasLapsed { open[number].hasLapsed = true }
        var number = -1
        takeOut(of: &open, into: &settled) { url in
            number += 1
            return url.hasLapsed ? nil : listed[number].flatMap { url.listed($0.entry) }
        }
    }

    private func listed(_ urls: [String]) async -> [Int: Blacklist.Listing]? {
        let ttl = batch.options.listingTTL
        // Retried after an unknown refusal; if the list itself is broken nothing is on it.
        for _ in 0..<3 where !worker.shutdown.draining.isOpen {
            let found = await worker.redis.persist { queue async throws(RedisError) in
                try await queue.failedURLs.listed(urls, ttl: ttl)
            }
            if let found { return found }
        }
        return nil
    }
}
