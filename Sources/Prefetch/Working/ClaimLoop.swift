internal import Redis
internal import Threading
internal import WebImage

/// Claims jobs and runs them until the worker leaves, or in a burst until no batch is running.
///
/// Confined to the worker's executor.
final class ClaimLoop {
    /// The most unreported outcomes, about 10 MB, before claiming stops because Redis refuses reports.
    private static let maxUnreported = 65_536

    private let worker: WorkerContext
    private let room: CapacityLoop
    private let reports: ReportLoop
    private let bellConnection: RedisConnection
    /// Rings with each claim that returned jobs.
    private let hasClaimed: WakeSignal
    /// The Redis connection on which it last reported its claims.
    private var syncedConnection = 0
    private var lastJobSize = 64
    /// The lowest priority that this worker has, once Redis said that it is the turn of a higher one.
    private var above: PrefetchPriority?
    /// Whether the last claim returned no job.
    private(set) var lacksWork = false
    /// How often it found no room, or was paused.
    private(set) var checks = 0
    /// The pause after a bell that rang for others.
    private var pause = Duration.milliseconds(2)
    /// Time of the last claim with jobs, and the factor for the size of the next.
    private var claimedAt = ContinuousClock.now
    private var reach = 1

    init(
        _ worker: WorkerContext, room: CapacityLoop, reports: ReportLoop, bellConnection: RedisConnection,
        hasClaimed: WakeSignal
    ) {
        self.worker = worker
        self.room = room
        self.reports = reports
        self.bellConnection = bellConnection
        self.hasClaimed = hasClaimed
    }

    /// * `above`: the lowest priority of this worker's batches, if it is the turn of a higher one.
    func heed(above: PrefetchPriority?) {
        // A worker of a run has its batch alone.
        guard worker.configuration.notes == nil else { return }
        self.above = above
        if above != nil { worker.jobs.room.ring() }
    }

    private var isLeaving: Bool { worker.shutdown.draining.isOpen || Task.isCancelled }

    /// Claims until the worker leaves; the jobs run as tasks of the group.
    nonisolated(nonsending) func claim(into group: inout DiscardingTaskGroup) async {
        let (worker, jobs, isBurst) = (worker, worker.jobs, worker.configuration.burst)
        while !isLeaving {
            while worker.faults.gate.message != nil || worker.network.fault != nil, !isLeaving {
                // Others may have done the rest.
                if isBurst, jobs.batches.isEmpty, await nothingIsLeft() { return }
                await jobs.room.wait(atMost: .seconds(1))
            }
            await worker.hold.wait()
            await agree()
            if worker.faults.files.rests {
                await jobs.room.wait(atMost: .milliseconds(100))
                continue
            }
            let run = worker.configuration.notes
            let batch = run?.batch
            guard run == nil || batch != nil else {
                // It is started beside the run's Redis, a moment before the run opens its batch.
                await jobs.room.wait(atMost: .milliseconds(3))
                continue
            }
            guard let share = await share() else {
                checks += 1
                await jobs.room.wait(atMost: .milliseconds(200))
                continue
            }
            let (name, next) = (worker.registration.name, worker.registration.sequence + 1)
            let result = await persist { queue async throws(RedisError) in
                try await queue.jobs.claim(
                    worker: name, sequence: next, count: share.jobs, lease: worker.configuration.lease,
                    urls: share.urls, above: share.above, batch: batch)
            }
            switch result {
            case .claimed(let claims) where !claims.isEmpty:
                (claimedAt, lacksWork, pause) = (.now, false, .milliseconds(2))
                for claim in claims {
                    let run = JobRun(claim: claim, worker: name)
                    let entry = jobs.add(run)
                    lastJobSize = claim.job.entries.count
                    group.addTask(executorPreference: worker.manager.pool) {
                        await JobWork.run(entry, run, of: worker)
                    }
                }
                worker.registration.didClaim(next)
                hasClaimed.ring()
                room.workBell.ring()
            case .claimed:
                worker.registration.didClaim(next)
                if share.above != nil { continue }
                lacksWork = true
                if isBurst, jobs.batches.isEmpty, await nothingIsLeft() { return }
                await waitForWork()
            case .paused:
                if isBurst, jobs.batches.isEmpty, await nothingIsLeft() { return }
                checks += 1
                // The next heartbeat ends the pause.
                await jobs.room.wait(atMost: .seconds(isBurst ? 1 : 5))
            case .left:
                // Others have them; the worker is here in case it is the last.
                if isBurst, jobs.batches.isEmpty, await nothingIsLeft() { return }
                lacksWork = true
                checks += 1
                await jobs.room.wait(atMost: .seconds(1))
            case .lost: await worker.registration.rejoin(after: name)
            case nil: break
            }
        }
    }

    /// What to claim: jobs until there are so many URLs.
    private struct Share {
        var jobs = 8
        var urls: Int
        var above: PrefetchPriority?
    }

    /// Enough to keep the transfers busy, and no more, so that other workers get some: nothing beyond the job that fills the room. Nil:
    /// nothing, unless a higher priority is waiting for its turn.
    private nonisolated(nonsending) func share() async -> Share? {
        let jobs = worker.jobs
        // While Redis refuses reports of a batch, its unreported outcomes must not grow forever.
        guard !reports.hasRefused || jobs.unreportedCount < Self.maxUnreported else { return nil }
        let undecided = worker.network.failures.count
        guard undecided < UndecidedFailures.most else { return nil }
        // Stalled URLs, and those waiting for a retry or for their host, hold no slot of the downloader; those that have failed hold none at all.
        let waiting = min(room.most, room.makeRoom(for: await worker.manager.downloader.activity) + undecided)
        let open = jobs.openCount
        // Small jobs come from a short list: each worker claims little more than it can transfer at once, or the first to wake would take
        // most of it; and it claims again when that surplus is gone, not for each URL.
        let most = room.concurrency
        let ahead = lastJobSize < 64 ? max(1, most / 4) : min(most, PrefetchJob.maxCount)
        let wanted = most + ahead - (open - waiting)
        let missing = (lastJobSize < 64 ? ahead : 1) - wanted
        guard missing <= 0, worker.slots.used < worker.slots.limit else {
            // Not for each URL that ends until then.
            jobs.wake(below: open - max(0, missing - 1))
            // Its downloader starts them first.
            guard let above, jobs.openCount(above: above) < most else { return nil }
            self.above = nil
            return Share(jobs: 1, urls: 1, above: above)
        }
        // A worker that ended all its jobs within 200 ms had hits or listed URLs: it claims up to four times as many, since a claim and a
        // report cost Redis more than the jobs in them. The first transfer resets that.
        reach = open == 0 && .now - claimedAt < .milliseconds(200) ? min(4, reach * 2) : 1
        return Share(urls: wanted + (reach - 1) * lastJobSize)
    }

    /// Blocks until there is work: BLMOVE leaves the bell in place. A minute at most: the bell may have been lost.
    private nonisolated(nonsending) func waitForWork() async {
        let bell = RedisArgument(worker.redis.queue.keys.bell)
        let (seconds, checks) = worker.configuration.burst ? (0.2, 1) : (5, 12)
        for _ in 0..<checks {
            // Who makes it leave interrupts the wait afterwards, possibly before it has begun.
            let (interrupts, began) = (bellConnection.interrupts, ContinuousClock.now)
            guard !isLeaving else { return }
            do throws(RedisError) {
                let reply = try await bellConnection.blocking(
                    ["BLMOVE", bell, bell, "RIGHT", "RIGHT", RedisArgument("\(seconds)")], timeout: .seconds(seconds),
                    since: interrupts)
                guard !reply.isNull else { continue }
                // Another worker may have taken the last job since the bell rang; one that rings all the time rings for another batch.
                if ContinuousClock.now - began > .milliseconds(5) { pause = .milliseconds(2) }
                try? await Task.sleep(for: pause)
                pause = min(pause * 2, .milliseconds(200))
            } catch {
                if error.code != .interrupted { try? await Task.sleep(for: .milliseconds(200)) }
            }
            return
        }
    }

    private nonisolated(nonsending) func nothingIsLeft() async -> Bool {
        await persist { queue async throws(RedisError) in try await queue.catalog.running() }?.isEmpty ?? false
    }

    /// After a reconnect Redis may have restarted without its last second: claims it has for this worker, but the worker has not, go back.
    /// Only between two claims: then the ledger has everything claimed.
    private nonisolated(nonsending) func agree() async {
        let (name, connection) = (worker.registration.name, await worker.redis.queue.connection.connections)
        guard connection != syncedConnection else { return }
        let known = worker.jobs.names(of: name)
        let kept = await persist { queue async throws(RedisError) in
            try await queue.jobs.keep(worker: name, jobs: known)
        }
        guard let kept else { return }
        if kept == nil { return await worker.registration.rejoin(after: name) }
        // If it has reconnected meanwhile, this is repeated.
        syncedConnection = connection
    }

    /// Nil as soon as the worker leaves.
    private nonisolated(nonsending) func persist<Success: Sendable>(
        _ body: nonisolated(nonsending) (PrefetchQueue) async throws(RedisError) -> Success
    ) async -> Success? {
        await worker.redis.persist(until: worker.shutdown.draining, body)
    }
}
