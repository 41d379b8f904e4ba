internal import Threading
internal import WebImage

/// Finds the worker's number of concurrent transfers while its setting is `auto`: samples the transfers, asks ``ConcurrencyController``,
/// and applies its number through ``CapacityLoop``. With a fixed number it only decides whether idle connections are kept
/// (``ConnectionWatch``). Sleeps while there is no work.
///
/// Confined to the worker's executor.
final class ConcurrencyLoop {
    private static let interval = Duration.milliseconds(250)
    /// Memory that a transfer may take: a body until it moves to a file, and curl's buffers. Half of the free memory is for others.
    private static let bytesPerTransfer = (1 << 20) + (256 << 10)
    /// The free memory changes all the time, its bound only in such steps.
    private static let memoryStep = 64

    private let worker: WorkerContext
    private let room: CapacityLoop
    /// nil: the number is fixed.
    private var controller: ConcurrencyController?
    private var watch = ConnectionWatch()
    private var load = ProcessorLoad()

    init(_ worker: WorkerContext, room: CapacityLoop) {
        (self.worker, self.room) = (worker, room)
    }

    /// Why the worker has its present number; nil: it was set. Without a URL it neither grows nor probes.
    var reason: ConcurrencyReason? {
        guard room.setting == .auto else { return nil }
        return worker.jobs.openCount == 0 ? .unused : controller?.reason ?? .growing
    }

    nonisolated(nonsending) func run() async {
        let downloader = worker.manager.downloader
        var isSampling = false
        while !Task.isCancelled {
            guard worker.jobs.openCount > 0 else {
                isSampling = false
                await room.workBell.wait()
                continue
            }
            if !isSampling {
                // What happened before is not part of the first interval.
                _ = await downloader.sample()
                // What it had found before stays the best guess.
                controller = controller.map { ConcurrencyController(limit: $0.limit) }
                load = ProcessorLoad()
                isSampling = true
            }
            do { try await Task.sleep(for: Self.interval) } catch { return }
            let sample = await downloader.sample()
            guard room.setting == .auto else {
                controller = nil
                watch.take(sample)
                await downloader.setConnections(
                    keepsIdle: watch.keepsIdleConnections, excusesConnects: watch.makesRoom)
                continue
            }
            watch = ConnectionWatch()
            var next = controller ?? ConcurrencyController(limit: room.concurrency)
            next.take(sample, bounds())
            controller = next
            await room.apply(next.limit)
            await downloader.setConnections(keepsIdle: next.keepsIdleConnections, excusesConnects: next.makesRoom)
        }
    }

    private func bounds() -> ConcurrencyBounds {
        var bounds = ConcurrencyBounds(descriptors: worker.configuration.concurrencyLimit)
        if let free = MachineMemory().available {
            let more = free / 2 / Self.bytesPerTransfer / Self.memoryStep * Self.memoryStep
            bounds.memory = max(ConcurrencyController.start, more)
        }
        if let own = ProcessUsage.milliseconds(with: worker.manager) {
            let reading = ProcessorLoad.Reading(
                at: MonotonicClock.now, own: Double(own) / 1000,
                transfers: worker.manager.downloader.processorTime / .seconds(1), machine: ProcessUsage.machine)
            bounds.processor = load.take(
                reading, processors: Processors.count, workers: worker.registration.settings.workers)
        }
        return bounds
    }
}
