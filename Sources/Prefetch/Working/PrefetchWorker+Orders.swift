internal import Redis
internal import Threading
internal import WebImage

extension PrefetchWorker {
    /// Does what its last sign of life brought: another number of transfers, a pause, the end of one.
    ///
    /// What has begun of a paused batch ends and counts. What has not begun goes back to the batch's list at once, without blame.
    /// * `held`: the batches that were asked about.
    func obey(_ orders: PrefetchQueue.WorkerOrders, held: [BatchIdentity]) async {
        let before = self.orders
        self.orders = orders
        await setConcurrency(orders.ownConcurrency ?? orders.queueConcurrency ?? configuration.maxConcurrentDownloads)
        if orders.isWorkerPaused != before.isWorkerPaused {
            configuration.onEvent(.halted(orders.isWorkerPaused))
            // It may claim again, or its wait is the longer one now.
            jobs.room.ring()
        }
        let paused = zip(held, orders.batches).filter { $1.isPaused }.map(\.0)
        let callsBackAll = orders.isWorkerPaused || orders.isQueuePaused
        guard callsBackAll || !paused.isEmpty, jobs.callBack(callsBackAll ? nil : Set(paused)) else { return }
        slots.dismissRevoked()
        await manager.downloader.endRevoked()
    }

    /// Lets so many transfers be in flight: claims, slots and the downloader go by it from now on.
    private func setConcurrency(_ wanted: Int) async {
        let count = min(wanted, configuration.mostConcurrentDownloads)
        guard count != concurrency else { return }
        concurrency = count
        allowed = 0
        slots.limit = Self.slots(for: count)
        await manager.downloader.setMaxConcurrentDownloads(count)
        jobs.setLowWater(2 * count)
        configuration.onEvent(.concurrency(count))
    }

    /// URLs under way for so many transfers: those that wait for their next try or are silent hold a slot, and no transfer.
    static func slots(for concurrency: Int) -> Int { max(256, 4 * concurrency) }
}
