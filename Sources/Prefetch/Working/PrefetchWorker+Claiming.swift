internal import Glibc
internal import Redis
internal import Threading
internal import WebImage

extension PrefetchWorker {
    /// Claims jobs and runs them until told to leave, or in a burst until no batch is running.
    func claimLoop() async {
        await withTaskGroup(of: Void.self) { timer in
            // Discarding: the other kind keeps something of every job that has ended, 5 KB each, as long as the worker lives.
            await withDiscardingTaskGroup { group in
                await claim(into: &group)
                // What is in flight has the drain timeout; then it is left open, but for what continues in the background.
                let (seconds, drained) = (configuration.drainTimeout, drained)
                timer.addTask {
                    try? await Task.sleep(for: .seconds(seconds))
                    if !Task.isCancelled { drained.open() }
                }
            }
            timer.cancelAll()
        }
    }

    private func claim(into group: inout DiscardingTaskGroup) async {
        while !draining.isOpen && !Task.isCancelled {
            await fault.wait()
            await hold.wait()
            await agree()
            let count = await claimable()
            guard count > 0 else {
                await jobs.room.wait(atMost: .milliseconds(200))
                continue
            }
            let (worker, next) = (name, sequence + 1)
            let result = await persist(until: draining) { () async throws(RedisError) in
                try await queue.claim(worker: worker, sequence: next, count: count, lease: configuration.lease)
            }
            switch result {
            case .claimed(let claims) where !claims.isEmpty:
                claimedAt = .now
                sequence = next
                configuration.history?.claimed(worker, claims)
                for claim in claims {
                    let id = jobs.add(JobRun(claim: claim, worker: worker))
                    lastJobSize = claim.job.entries.count
                    group.addTask(executorPreference: pool) { await self.runJob(id, claim) }
                }
                hasClaimed.ring()
            case .claimed:
                sequence = next
                if configuration.burst, jobs.isEmpty, await nothingIsLeft() { return }
                await waitForWork()
            case .paused:
                if configuration.burst, jobs.isEmpty, await nothingIsLeft() { return }
                // The next sign of life brings the news that it may go on.
                await jobs.room.wait(atMost: .seconds(configuration.burst ? 1 : 5))
            case .lost: await rejoin(after: worker)
            case nil: break
            }
        }
    }

    /// Outcomes that are kept while Redis does not take them, before no more jobs are claimed: about 10 MB.
    private static let mostUnreported = 65_536

    /// How many jobs to ask for: enough that the transfers never run dry, and no more, so that others have something to do.
    private func claimable() async -> Int {
        // While Redis takes no reports of some batch, what is kept for it must not grow for ever.
        guard refused.isEmpty || jobs.unreportedCount < Self.mostUnreported else { return 0 }
        let activity = await manager.downloader.activity
        // What is parked, waits for its next try or for its host holds no slot of the downloader.
        let allowance = allowance(activity)
        makeRoom(for: allowance)
        let active = jobs.openCount - allowance
        // Small jobs are those of a short list: of one, each worker has little more than it can have in flight, or the first to wake has
        // most of it while the others look on; and it asks when that little more is gone, not for each URL.
        let most = concurrency
        let ahead = lastJobSize < 64 ? max(1, most / 4) : most
        let wanted = most + ahead - active
        guard wanted >= (lastJobSize < 64 ? ahead : 1), slots.used < slots.limit else { return 0 }
        // Whoever has ended all it had within 200 ms has hits, or listed URLs: it asks for up to four times as many, since a claim and a
        // report cost Redis more than the jobs in them. The first transfer ends that.
        reach = jobs.openCount == 0 && .now - claimedAt < .milliseconds(200) ? min(4, reach * 2) : 1
        return min(8, max(1, wanted / max(1, lastJobSize)) * reach)
    }

    /// Sleeps until there is work: a blocking look at the bell, which leaves it where it is. A minute at most: somebody may have taken the
    /// bell away.
    private func waitForWork() async {
        let (seconds, looks) = configuration.burst ? (0.2, 1) : (5, 12)
        for _ in 0..<looks where !draining.isOpen && !Task.isCancelled {
            do throws(RedisError) {
                let reply = try await bellConnection.blocking(
                    [
                        "BLMOVE", RedisArgument(queue.keys.bell), RedisArgument(queue.keys.bell), "RIGHT", "RIGHT",
                        RedisArgument("\(seconds)"),
                    ], timeout: .seconds(seconds))
                guard !reply.isNull else { continue }
                // Between the bell and a claim another worker may have taken the last job.
                try? await Task.sleep(for: .milliseconds(2))
            } catch {
                if error.code != .interrupted { try? await Task.sleep(for: .milliseconds(200)) }
            }
            return
        }
    }

    private func nothingIsLeft() async -> Bool {
        await persist(until: draining) { () async throws(RedisError) in try await queue.runningBatches() }?.isEmpty
            ?? false
    }

    /// On a new connection Redis may be one that was started anew without its last second: whatever it thinks this worker has, and it has
    /// not, goes back. Only between two claims: then the ledger has all that was claimed.
    private func agree() async {
        let (worker, connection) = (name, await queue.connection.connections)
        guard connection != agreedOn else { return }
        let held = jobs.names(of: worker)
        let kept = await persist(until: draining) { () async throws(RedisError) in
            try await queue.keep(worker: worker, jobs: held)
        }
        guard let kept else { return }
        if kept == nil { return await rejoin(after: worker) }
        // Where it has connected again in between, it says so once more.
        agreedOn = connection
    }

    /// Its jobs were taken back: what runs is finished and reported, what waits is left to others, and it joins anew.
    func rejoin(after worker: String) async {
        // The beat loop and the claim loop may both have been told.
        guard worker == name, !isJoining else { return }
        configuration.onEvent(.lost(worker))
        configuration.history?.lost(worker)
        lossCount += 1
        ownTotals = PrefetchCounts()
        await register()
        await manager.downloader.sayHostSharesAgain()
    }

    /// What a batch asks; nil where Redis has no such batch, or a later one of its name.
    func context(of batch: BatchIdentity) async -> BatchContext? {
        // One that was gone may be there again: Redis came back with its data.
        if let known = batches[batch], !known.over.isOpen { return known }
        let asked = Self.wallClock
        let status = await persist { () async throws(RedisError) in try await queue.status(of: batch.id) }
        guard let status, let status, status.nonce == batch.nonce else { return nil }
        await protect(status, asked: asked)
        if let known = batches[batch], !known.over.isOpen { return known }
        let context = BatchContext(status)
        if status.state != .running { context.over.open() }
        batches[batch] = context
        return context
    }
}
