internal import Threading
internal import WebImage

/// Determines how many concurrent transfers, and how many started URLs, a worker may have.
///
/// URLs that wait for a host, a response or another process do not count as load: as many more are claimed, so slow hosts delay no others.
/// Of those that wait for a name no more count than the resolver is asked for at once, unless it is slow.
///
/// Confined to the worker's executor.
final class CapacityLoop {
    /// The most additional URLs: each costs some kilobytes. A worker without a success for a while may be out of order: it must not have what
    /// others could fetch, beyond what goes on beside a silent resolver or host.
    var most: Int { worker.network.isProven ? 4096 : URLSlots.limit(of: concurrency) }

    private let worker: WorkerContext
    /// The present number of concurrent transfers.
    private(set) var concurrency: Int
    /// What the worker was told: `auto`, or a number.
    private(set) var setting: ConcurrentDownloads
    /// Rings when there is work for ``ConcurrencyLoop``.
    let workBell = WakeSignal()
    private var allowed = 0

    init(_ worker: WorkerContext) {
        self.worker = worker
        setting = worker.configuration.maxConcurrentDownloads
        concurrency = worker.configuration.maxConcurrentDownloads.initial
    }

    /// Before anything is claimed: with a fixed number stalled transfers count.
    nonisolated(nonsending) func begin() async {
        await worker.manager.downloader.setFreesStalled(setting == .auto)
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
            most,
            activity.waitingForHost + activity.waitingForName + activity.stalled + activity.retrying
                + worker.manager.cache.transfers.waitingOnOtherProcesses)
        let step = max(16, concurrency / 2)
        if abs(waiting - allowed) >= step || waiting == 0 && allowed > 0 {
            allowed = waiting
            worker.slots.limit = URLSlots.limit(of: concurrency) + waiting
            worker.jobs.room.ring()
        }
        return waiting
    }

    /// Applies a setting, within the limit of open files.
    /// * `wanted`: nil = the startup value.
    nonisolated(nonsending) func setConcurrency(_ wanted: ConcurrentDownloads?) async {
        let configuration = worker.configuration
        let new = wanted ?? configuration.maxConcurrentDownloads
        let isOther = new != setting
        setting = new
        if isOther { await worker.manager.downloader.setFreesStalled(new == .auto) }
        // From the present number it goes on by itself.
        guard let count = new.count else {
            if isOther { configuration.onEvent(.concurrency(.auto)) }
            return
        }
        let isChange = await apply(min(count, configuration.concurrencyLimit))
        if isChange { configuration.onEvent(.concurrency(.fixed(concurrency))) }
    }

    /// Sets the number of concurrent transfers for claims, slots and the downloader; false if it is the present one.
    @discardableResult
    nonisolated(nonsending) func apply(_ count: Int) async -> Bool {
        guard count != concurrency else { return false }
        concurrency = count
        allowed = 0
        worker.slots.limit = URLSlots.limit(of: count)
        await worker.manager.downloader.setMaxConcurrentDownloads(count)
        worker.jobs.room.ring()
        return true
    }
}
