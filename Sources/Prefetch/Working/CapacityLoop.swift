internal import Threading
internal import WebImage

/// Determines how many concurrent transfers, and how many started URLs, a worker may have.
///
/// URLs that wait for a host, a response or another process do not count as load: as many more are claimed, so slow hosts delay no others.
///
/// Confined to the worker's executor.
final class CapacityLoop {
    /// The most additional URLs: each costs some kilobytes.
    private static let maxAllowed = 4096

    private let worker: WorkerContext
    private(set) var concurrency: Int
    private var allowed = 0

    init(_ worker: WorkerContext) {
        self.worker = worker
        concurrency = worker.configuration.maxConcurrentDownloads
    }

    /// Makes room while URLs wait for hosts, also if there is nothing to claim: later ones may respond. Only while a job waits for a slot.
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
            Self.maxAllowed,
            activity.waitingForHost + activity.parked + activity.retrying
                + worker.manager.cache.transfers.waitingOnOtherProcesses)
        let step = max(16, concurrency / 2)
        if abs(waiting - allowed) >= step || waiting == 0 && allowed > 0 {
            allowed = waiting
            worker.slots.limit = URLSlots.limit(of: concurrency) + waiting
            worker.jobs.room.ring()
        }
        return waiting
    }

    /// Sets the number of concurrent transfers for claims, slots and the downloader, within the limit of open files.
    /// * `wanted`: nil = the startup value.
    nonisolated(nonsending) func setConcurrency(_ wanted: Int?) async {
        let configuration = worker.configuration
        let count = min(wanted ?? configuration.maxConcurrentDownloads, configuration.concurrencyLimit)
        guard count != concurrency else { return }
        concurrency = count
        allowed = 0
        worker.slots.limit = URLSlots.limit(of: count)
        await worker.manager.downloader.setMaxConcurrentDownloads(count)
        worker.jobs.room.ring()
        configuration.onEvent(.concurrency(count))
    }
}
