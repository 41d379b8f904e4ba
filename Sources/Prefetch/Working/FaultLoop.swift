internal import Threading
internal import WebImage

/// While a local fault lasts: probes the disk, less and less often, and gives the worker's jobs back to the queue once nothing was stored for a
/// lease. Until a probe succeeds the worker claims nothing, so jobs do not circulate among workers that are all full.
///
/// Confined to the worker's executor.
final class FaultLoop {
    /// Bytes that must be free: first, and at most.
    private static let room = (least: 64 << 10, most: 64 << 20)
    /// A fault after such a time without one is another.
    private static let calm = Duration.seconds(30)

    private let worker: WorkerContext
    private var pause = BackOff(first: .seconds(1))
    /// Four times as much after each probe that promised too much.
    private var room = FaultLoop.room.least
    private var closings = 0
    /// Images that were stored when the fault began, and when that was.
    private var stored = -1, since = ContinuousClock.now
    private var openSince: ContinuousClock.Instant?

    init(_ worker: WorkerContext) { self.worker = worker }

    nonisolated(nonsending) func run() async {
        let faults = worker.faults
        while !Task.isCancelled {
            guard faults.gate.message != nil else {
                openSince = openSince ?? .now
                await faults.bell.wait()
                continue
            }
            if faults.closings != closings { begin() }
            await giveBackIfOverdue()
            await probeIfDue()
            let rest = faults.gate.isClosed(by: .files) ? pause.rest() : .seconds(1)
            await faults.bell.wait(atMost: max(.milliseconds(10), min(rest, .seconds(1))))
        }
    }

    /// A fault is the last one again if it comes soon and no image was stored in between.
    private func begin() {
        closings = worker.faults.closings
        let isCalm = openSince.map { ContinuousClock.now - $0 > Self.calm } ?? false
        openSince = nil
        if worker.faults.stored != stored || isCalm {
            (stored, since) = (worker.faults.stored, .now)
            pause.succeed()
            room = Self.room.least
        } else {
            room = min(room * 4, Self.room.most)
        }
        pause.fail(jitter: BackOff.jitter)
    }

    /// Again and again: a claim may have been on its way.
    private nonisolated(nonsending) func giveBackIfOverdue() async {
        guard ContinuousClock.now - since >= .milliseconds(worker.configuration.lease) else { return }
        worker.faults.noteJobsAreBack()
        guard worker.jobs.revokePermits(nil) else { return }
        await worker.endRevoked()
    }

    private nonisolated(nonsending) func probeIfDue() async {
        let (faults, room) = (worker.faults, room)
        guard faults.gate.isClosed(by: .files), pause.isDue() else { return }
        if await worker.manager.pool.run({ faults.probe(room: room) }) {
            faults.gate.reopen(.files)
        } else {
            pause.fail(jitter: BackOff.jitter)
        }
    }
}
