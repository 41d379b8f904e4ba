internal import Glibc
internal import Redis
internal import Threading
internal import WebImage

extension PrefetchWorker {
    /// Keeps the cache within its limits and says which batches' images must stay, until the worker leaves.
    func sweepLoop() async {
        await protectRunning()
        var fullSince: ContinuousClock.Instant?
        var isPaused = false
        var wait = Duration.seconds(1)
        // Once at least, however short the worker's life.
        repeat {
            await releaseEnded()
            let (draining, stopping) = (draining, drained)
            let keeper = keeper
            switch await keeper.look(isOver: { keeper.isOver(isLeaving: draining.isOpen, isStopping: stopping.isOpen) })
            {
            case .room:
                fullSince = nil
                wait = .seconds(1)
                _ = keeper.room.reopen()
                if isPaused {
                    isPaused = false
                    if fault.reopen() { configuration.onEvent(.resumed) }
                }
            case .full(let isSwept, let error):
                _ = keeper.room.close("the cache is full")
                let since = fullSince ?? .now
                fullSince = since
                // A batch that has just ended may still be protected by others, and another may be sweeping: that passes.
                if isSwept, !isPaused, .now - since > .seconds(3) { isPaused = pause(keeper.tooSmall(error)) }
                wait = wait > .milliseconds(500) && !isPaused ? .milliseconds(50) : min(wait * 2, .seconds(2))
            case .low(let message):
                fullSince = nil
                wait = .seconds(1)
                if !isPaused { isPaused = pause(message) }
            }
            await keeper.bell.wait(atMost: wait)
        } while !Task.isCancelled
    }

    private func pause(_ message: String) -> Bool {
        if fault.close(message) { configuration.onEvent(.paused(message)) }
        return true
    }

    /// Returns when the cache has room for another image, or the worker leaves.
    nonisolated func waitForRoom() async {
        while !keeper.hasRoom && !draining.isOpen && !Task.isCancelled {
            _ = keeper.room.close("the cache is full")
            // After the close: the loop looks once more, and opens what was closed too late.
            keeper.bell.ring()
            await keeper.room.wait()
        }
    }

    /// What was fetched since a batch was made stays, by this machine's clock: Redis' may be another.
    ///
    /// * `asked`: when the status was asked for, seconds since 1970.
    func protect(_ status: BatchStatus, asked: Double) async {
        guard status.state == .running else { return }
        let since = asked - Double(max(0, status.at - status.created)) / 1000
        await pool.run { [keeper] in keeper.protect(status.id, since: since) }
    }

    /// Seconds since 1970 by this machine's clock.
    package static var wallClock: Double {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private func protectRunning() async {
        let asked = Self.wallClock
        let statuses = await persist { () async throws(RedisError) in
            try await queue.statuses(of: try await queue.runningBatches())
        }
        for status in statuses ?? [] { await protect(status, asked: asked) }
    }

    /// Not with patience: where Redis is away the cache has to be looked after all the same.
    private func releaseEnded() async {
        let known = keeper.protectedBatches
        guard !known.isEmpty else { return }
        var queue = queue
        queue.patience = .seconds(1)
        do throws(RedisError) {
            let running = Set(try await queue.statuses(of: known).filter { $0.state == .running }.map(\.id))
            let ended = known.filter { !running.contains($0) }
            await pool.run { [keeper] in keeper.release(ended) }
            for (batch, context) in batches where !running.contains(batch.id) && known.contains(batch.id) {
                context.forgetCookies()
            }
        } catch {
            // They stay protected until it answers.
        }
    }
}
