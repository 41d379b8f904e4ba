internal import Threading
internal import WebImage

/// Keeps the cache within its limits and publishes which images are protected, until the worker leaves. ``CacheKeeper`` does the work.
enum SweepLoop {
    nonisolated(nonsending) static func run(_ worker: WorkerContext) async {
        let (keeper, shutdown) = (worker.keeper, worker.shutdown)
        await worker.batches.protectRunning()
        var fullSince: ContinuousClock.Instant?
        var isPaused = false
        var wait = Duration.seconds(1)
        // At least once, however short the worker's life.
        repeat {
            await worker.batches.releaseEnded()
            let finding = await keeper.check {
                keeper.isOver(isLeaving: shutdown.draining.isOpen, isStopping: shutdown.drained.isOpen)
            }
            switch finding {
            case .room:
                fullSince = nil
                wait = .seconds(1)
                keeper.room.reopen(.room)
                if isPaused { worker.faults.gate.reopen(.room) }
                isPaused = false
            case .full(let isSwept, let error):
                keeper.noteFull()
                let since = fullSince ?? .now
                fullSince = since
                // An ended batch may still be protected by other workers, and another may be sweeping: that passes.
                if isSwept, !isPaused, .now - since > .seconds(3) {
                    worker.faults.gate.close(keeper.tooSmall(error), by: .room)
                    isPaused = true
                }
                wait = wait > .milliseconds(500) && !isPaused ? .milliseconds(50) : min(wait * 2, .seconds(2))
            case .low(let message):
                fullSince = nil
                wait = .seconds(1)
                if !isPaused { worker.faults.gate.close(message, by: .room) }
                isPaused = true
            }
            await keeper.bell.wait(atMost: wait)
        } while !Task.isCancelled
    }
}
