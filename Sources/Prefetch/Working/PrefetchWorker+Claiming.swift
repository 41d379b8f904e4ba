internal import Glibc
internal import Redis
internal import Threading
internal import WebImage

extension PrefetchWorker {
    /// Claims jobs and runs them until told to leave, or in a burst until no batch is running.
    func claimLoop() async {
        await withTaskGroup(of: Void.self) { group in
            let timer = Latch()
            while !draining.isOpen && !Task.isCancelled && fatal == nil {
                await fault.wait()
                let count = await claimable()
                guard count > 0 else {
                    await jobs.room.wait(atMost: .milliseconds(200))
                    continue
                }
                let (worker, next) = (name, sequence + 1)
                let result = await persist { () async throws(RedisError) in
                    try await queue.claim(worker: worker, sequence: next, count: count, lease: configuration.lease)
                }
                switch result {
                case .claimed(let claims) where !claims.isEmpty:
                    sequence = next
                    for claim in claims {
                        let id = jobs.add(JobRun(claim: claim, worker: worker))
                        lastJobSize = claim.job.entries.count
                        group.addTask(executorPreference: pool) { await self.runJob(id, claim) }
                    }
                case .claimed:
                    sequence = next
                    if configuration.burst, jobs.isEmpty, await nothingIsLeft() { return }
                    await waitForWork()
                case .lost: await rejoin(after: worker)
                case nil: break
                }
            }
            // What is in flight has the drain timeout; then it is left open.
            let (seconds, stopping) = (configuration.drainTimeout, stopping)
            await withTaskGroup(of: Void.self) { end in
                end.addTask {
                    try? await Task.sleep(for: .seconds(seconds))
                    if !Task.isCancelled { stopping.open() }
                }
                end.addTask { await timer.wait() }
                await group.waitForAll()
                timer.open()
                end.cancelAll()
            }
        }
    }

    /// How many jobs to ask for: enough that the transfers never run dry, and no more, so that others have something to do.
    private func claimable() async -> Int {
        let activity = await manager.downloader.activity
        // A transfer that is parked or waits for its next try holds no slot of the downloader.
        let active = jobs.openCount - activity.parked - activity.retrying
        let wanted = 2 * configuration.maxConcurrentDownloads - active
        guard wanted > 0, slots.used < slots.limit else { return 0 }
        return min(8, max(1, wanted / max(1, lastJobSize)))
    }

    /// Sleeps until there is work: a blocking look at the bell, which leaves it where it is.
    private func waitForWork() async {
        let seconds = configuration.burst ? 0.2 : 5
        do throws(RedisError) {
            let reply = try await bellConnection.blocking(
                [
                    "BLMOVE", RedisArgument(queue.keys.bell), RedisArgument(queue.keys.bell), "RIGHT", "RIGHT",
                    RedisArgument("\(seconds)"),
                ], timeout: .seconds(seconds))
            // Between the bell and a claim another worker may have taken the last job.
            if !reply.isNull { try? await Task.sleep(for: .milliseconds(2)) }
        } catch {
            guard error.code != .interrupted else { return }
            try? await Task.sleep(for: .milliseconds(200))
        }
    }

    private func nothingIsLeft() async -> Bool {
        await persist { () async throws(RedisError) in try await queue.runningBatches() }?.isEmpty ?? false
    }

    /// Its jobs were taken back: what runs is finished and reported, what waits is left to others, and it joins anew.
    func rejoin(after worker: String) async {
        // The beat loop and the claim loop may both have been told.
        guard worker == name else { return }
        configuration.onEvent(.lost(worker))
        lossCount += 1
        await register()
    }

    /// What a batch asks; nil where Redis has no such batch.
    func context(of batch: String) async -> BatchContext? {
        if let known = batches[batch] { return known }
        let asked = Self.wallClock
        let status = await persist { () async throws(RedisError) in try await queue.status(of: batch) }
        guard let status, let status else { return nil }
        protect(status, asked: asked)
        if let known = batches[batch] { return known }
        let context = BatchContext(id: batch, options: status.options, keepDetails: status.keepDetails)
        if status.state != .running { context.over.open() }
        batches[batch] = context
        return context
    }
}
