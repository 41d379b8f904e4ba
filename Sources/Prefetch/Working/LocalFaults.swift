internal import Threading
internal import WebImage

/// The local faults of a worker. One of its disk or machine holds the whole worker back until ``FaultLoop`` finds it repaired; one of a single
/// file concerns its URL alone (``StoreTrial``).
final class LocalFaults: Sendable {
    /// Seconds after a fault of a file in which others may show that it is the disk's.
    private static let trial = Duration.seconds(3)

    private struct State {
        var tally = FaultTally()
        var stored = 0, closings = 0
        var areJobsBack = false
    }

    /// Closed while a local fault lasts: nothing starts, and nothing is claimed.
    let gate: FaultGate
    /// Rings when the gate has closed.
    let bell: WakeSignal
    /// URLs whose file alone is at fault.
    let files = UnstoredURLs()
    private let disk: DiskCache
    private let keeper: CacheKeeper
    private let shutdown: Shutdown
    private let state: Locked<State>

    init(
        _ disk: DiskCache, keeper: CacheKeeper, shutdown: Shutdown,
        onEvent: @escaping @Sendable (PrefetchWorker.Event) -> Void
    ) {
        (self.disk, self.keeper, self.shutdown) = (disk, keeper, shutdown)
        let (state, bell) = (Locked(State()), WakeSignal())
        (self.state, self.bell) = (state, bell)
        gate = FaultGate { message in
            state.withLock { state in
                if message != nil { state.closings += 1 }
                state.areJobsBack = false
            }
            if message != nil { bell.ring() }
            onEvent(message.map { .paused($0) } ?? .resumed)
        }
    }

    /// What holds the worker back, and whether it still has its jobs; nil without a fault.
    var trouble: String? {
        let areJobsBack = state.withLock { $0.areJobsBack }
        return gate.message.map { areJobsBack ? "\($0); its jobs went back to the queue" : $0 }
    }

    /// How often the gate has closed.
    var closings: Int { state.withLock { $0.closings } }

    /// Images stored so far: the progress that this disk makes.
    var stored: Int { state.withLock { $0.stored } }

    func noteJobsAreBack() { state.withLock { $0.areJobsBack = true } }

    func succeed(_ count: Int = 1, isStored: Bool = false) {
        state.withLock { state in
            state.tally.succeed(count)
            if isStored { state.stored += count }
        }
    }

    /// Returns when the disk takes images; false if the URL is to be left to others: its job was called back, or the worker leaves.
    nonisolated(nonsending) func mayStart(_ permit: DownloadPermit) async -> Bool {
        await gate.wait(for: permit)
        if !keeper.hasRoom { await keeper.waitForRoom(orUntil: shutdown.draining, permit: permit) }
        if permit.isRevoked { return false }
        return !shutdown.draining.isOpen || gate.message == nil && keeper.hasRoom
    }

    func dismissRevoked() {
        gate.dismissRevoked()
        keeper.room.dismissRevoked()
    }

    /// Whether the disk takes a file of ours. Blocks.
    /// * `room`: bytes that must be free.
    func probe(room: Int = 0) -> Bool {
        do throws(WebImageError) {
            try CacheProbe(disk).run(room: room)
            return true
        } catch {
            return false
        }
    }

    /// Whether a fault is of the URL's own file, because the disk takes and returns another one, and no more than a few fail. Otherwise the
    /// gate is closed.
    nonisolated(nonsending) func isOfItsFile(_ error: WebImageError) async -> Bool {
        let before = closings
        guard error.isOfOneFile, gate.message == nil, probe(), state.withLock({ $0.tally.fail() }) else {
            gate.close(error.message, by: .files)
            return false
        }
        await withTaskGroup(of: Void.self) { [shutdown] group in
            group.addTask { try? await Task.sleep(for: Self.trial) }
            group.addTask { await shutdown.draining.wait() }
            await group.next()
            group.cancelAll()
        }
        return before == closings
    }
}
