internal import Threading
internal import WebImage

/// How many transfers at once, and how many URLs under way, a worker may have.
///
/// URLs that wait for their host, for an answer or for the transfer of another process do not count as work in hand: so many more are claimed, or
/// a slow host would keep those of others from being asked.
///
/// Confined to the worker's executor.
final class RoomLoop {
    /// How many more URLs may be under way: each costs some kilobytes.
    private static let mostAllowed = 4096

    private let worker: WorkerContext
    /// Transfers at once, as it was started or as it was told since.
    private(set) var concurrency: Int
    /// How many URLs more than usual it has.
    private var allowed = 0

    init(_ worker: WorkerContext) {
        self.worker = worker
        concurrency = worker.configuration.maxConcurrentDownloads
    }

    /// Makes room as URLs come to wait for their hosts, also while there is nothing to claim: those behind them may be for hosts that
    /// answer. It looks only while somebody waits for a slot.
    nonisolated(nonsending) func run() async {
        let slots = worker.slots
        while !Task.isCancelled {
            await slots.crowd.wait()
            makeRoom(for: await worker.manager.downloader.activity)
            guard slots.waiting > 0 else { continue }
            do { try await Task.sleep(for: .milliseconds(50)) } catch { return }
            slots.crowd.ring()
        }
    }

    /// Makes room for as many more URLs as wait; returns their number.
    @discardableResult
    func makeRoom(for activity: ImageDownloader.Activity) -> Int {
        let waiting = min(
            Self.mostAllowed,
            activity.waitingForHost + activity.parked + activity.retrying
                + worker.manager.cache.transfers.waitingForOthers)
        let step = max(16, concurrency / 2)
        if abs(waiting - allowed) >= step || waiting == 0 && allowed > 0 {
            allowed = waiting
            worker.slots.limit = URLSlots.limit(of: concurrency) + waiting
            worker.jobs.setLowWater(2 * concurrency + waiting)
        }
        return waiting
    }

    /// Lets so many transfers be in flight, as far as its limit of open files allows: claims, slots and the downloader go by it from now
    /// on.
    ///
    /// * `wanted`: nil = as it was started.
    nonisolated(nonsending) func setConcurrency(_ wanted: Int?) async {
        let configuration = worker.configuration
        let count = min(wanted ?? configuration.maxConcurrentDownloads, configuration.mostConcurrentDownloads)
        guard count != concurrency else { return }
        concurrency = count
        allowed = 0
        worker.slots.limit = URLSlots.limit(of: count)
        await worker.manager.downloader.setMaxConcurrentDownloads(count)
        worker.jobs.setLowWater(2 * count)
        configuration.onEvent(.concurrency(count))
    }
}
