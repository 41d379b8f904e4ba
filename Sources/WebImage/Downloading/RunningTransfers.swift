/// The running transfers in curl's multi handle, including stalled ones. Used only on the downloader's thread.
final class RunningTransfers {
    private let multi: CurlMulti
    private let session: CurlSession
    private let spooling: SpoolingTransfers
    private(set) var operations: [DownloadOperation] = []
    /// Stalled transfers; they hold no slot of the downloader.
    private(set) var stalledCount = 0
    private var mostStalled = 0
    /// Seconds to the first byte of a response, as a mean of the last ones; nil before the first.
    private var usualWait: Double?
    /// Transfers that the connections are for, and how many others are kept at most beside theirs.
    private var expected = 1, mostIdle = 1
    /// Transfers that curl had when it last worked: each has a connection.
    private var connected = 0
    /// Connections that are kept for each expected transfer, and beside them, for hosts of which a second URL is not known yet.
    private static let (idlePerTransfer, idleBeside) = (4, 64)
    /// Seconds for which curl keeps a connection that no transfer uses: its default, and the shortest time.
    private static let (idleTime, shortestIdleTime) = (118, 1)
    /// Next time to check them; infinity: none has started yet.
    private(set) var nextCheck = Double.infinity
    private var checkInterval = 0.25
    /// Bytes of the responses of ended transfers.
    private var endedBytes = 0

    init(_ multi: CurlMulti, session: CurlSession, spooling: SpoolingTransfers) {
        self.multi = multi
        self.session = session
        self.spooling = spooling
    }

    var activeCount: Int { operations.count - stalledCount }

    /// * `isUsedAgain`: whether its host has more than this one URL: others wait for it, or it has sent bodies before.
    func start(
        _ operation: DownloadOperation, on handle: CurlHandle, isUsedAgain: Bool, now: Double
    ) throws(WebImageError) {
        // curl would close the oldest one if there are too many. But then it looks at all of them, and at every host that there ever was (7.88).
        let keepsConnection = keepsConnection(isUsedAgain: isUsedAgain)
        handle.keepConnection(keepsConnection, for: sparesConnections ? Self.shortestIdleTime : Self.idleTime)
        operation.beginTransfer(on: handle, keepsConnection: keepsConnection)
        do throws(WebImageError) {
            try multi.add(handle)
        } catch {
            operation.endTransfer()
            handle.end()
            throw error
        }
        let interval = operation.profile.checkInterval
        checkInterval = operations.isEmpty ? interval : min(checkInterval, interval)
        nextCheck = operations.isEmpty ? now + interval : min(nextCheck, now + interval)
        operation.move(to: operations.count)
        operations.append(operation)
    }

    /// Removes an operation's transfer, if any, from curl, finished or not.
    func stop(_ operation: DownloadOperation, now: @autoclosure () -> Double) {
        guard let handle = operation.handle else { return }
        operation.count(isThrottled: handle.isPaused, now: now())
        multi.remove(handle)
        endedBytes += operation.progress.bytes
        if operation.isStalled { stalledCount -= 1 }
        operation.endTransfer()
        // curl may keep the paused state of a paused handle.
        let isClean = !handle.isPaused
        handle.end()
        // Otherwise a new handle is created when needed.
        if isClean { session.giveBack(handle) }
        let last = operations.removeLast()
        if last !== operation {
            operations[operation.index] = last
            last.move(to: operation.index)
        }
    }

    /// What its transfers do at this moment; stalled ones hold no slot and are not in it.
    var stages: TransferStages {
        var stages = TransferStages()
        stages.isSpooling = spooling.isHolding
        stages.bytes = endedBytes
        for operation in operations {
            let progress = operation.progress
            stages.bytes += progress.bytes
            guard !operation.isStalled else { continue }
            if progress.hasHeader { stages.receiving += 1 } else { stages.answering += 1 }
        }
        return stages
    }

    func perform() {
        multi.perform()
        connected = operations.count
    }

    func nextFinished() -> (operation: DownloadOperation, handle: CurlHandle, code: Int32)? {
        while let (handle, code) = multi.nextFinished() {
            guard let operation = handle.operation else { continue }
            if code == 0 {
                let wait = handle.info.firstByte
                usualWait = usualWait.map { $0 + (wait - $0) / 16 } ?? wait
            }
            return (operation, handle, code)
        }
        return nil
    }

    func goOn() { spooling.goOn() }

    /// Checks all transfers if due: frees the slots of stalled ones, and reports those over a limit and those whose body is coming.
    func check(
        now: Double, didPassLimit: (DownloadOperation, CurlHandle, WebImageError) -> Void,
        isReceiving: (DownloadOperation, CurlHandle) -> Void
    ) {
        guard now >= nextCheck else { return }
        // After a stop of the process (SIGSTOP, suspend) all transfers appear stalled: not the servers' fault.
        let wasFrozen = now - nextCheck >= max(1, 4 * checkInterval)
        nextCheck = now + checkInterval
        for operation in operations {
            // Handling one transfer's limit may have ended others.
            guard let handle = operation.handle else { continue }
            if wasFrozen {
                handle.wasThrottled(now: now)
                operation.count(isThrottled: true, now: now)
            }
            // Our own limit holds its bytes back.
            if handle.isPaused { handle.wasThrottled(now: now) }
            operation.count(isThrottled: handle.isPaused, now: now)
            let limits = operation.profile.configuration
            if let error = operation.spent.check(limits, tries: operation.tries)
                ?? handle.check(
                    now: now, limits: limits, dripTime: max(limits.stalledAfter / 4, usualStallTime(limits)))
            {
                didPassLimit(operation, handle, error)
            } else {
                let progress = handle.response.progress
                if progress.hasHeader, operation.windowUse != .wasAnswered { isReceiving(operation, handle) }
                noteStall(operation, progress, now: now, limits: limits)
            }
        }
    }

    private func noteStall(
        _ operation: DownloadOperation, _ progress: TransferProgress, now: Double, limits: ImageDownloader.Configuration
    ) {
        let isSilent = now - progress.lastByte >= stallTime(with: progress, limits) || progress.isDripping
        if isSilent && !operation.isStalled && stalledCount < mostStalled {
            setStalled(operation, true)
        } else if !isSilent && operation.isStalled {
            setStalled(operation, false)
        }
    }

    /// Silence after which a transfer is stalled. A reachable host establishes a connection much faster than some respond; a request that waits
    /// for several times as long as those of late is one of a host that does not.
    private func stallTime(with progress: TransferProgress, _ limits: ImageDownloader.Configuration) -> Double {
        guard progress.requestWasSent else { return limits.stalledAfter / 4 }
        return progress.hasHeader ? limits.stalledAfter : usualStallTime(limits)
    }

    /// Several times as long as responses of late took to their first byte.
    private func usualStallTime(_ limits: ImageDownloader.Configuration) -> Double {
        guard let usualWait else { return limits.stalledAfter }
        return min(limits.stalledAfter, max(limits.stalledAfter / 8, 4 * usualWait))
    }

    private func setStalled(_ operation: DownloadOperation, _ isStalled: Bool) {
        operation.setStalled(isStalled)
        stalledCount += isStalled ? 1 : -1
    }

    private var connectionCount: Int { multi.sockets.openCount }

    /// Connections, those of no transfer and those that are being made included, and the delays of new ones.
    func takeConnections() -> (count: Int, delays: [Double]) { (connectionCount, multi.sockets.takeDelays()) }

    /// * `expected`: for how many transfers there are connections.
    /// * `mostIdle`: how many others are kept at most for later requests to their hosts.
    /// * `mostStalled`: how many stalled transfers hold no slot; those beyond it hold one again.
    func setLimits(expected: Int, mostIdle: Int, mostStalled: Int) {
        (self.expected, self.mostIdle, self.mostStalled) = (expected, mostIdle, mostStalled)
        for operation in operations where operation.isStalled && stalledCount > mostStalled {
            setStalled(operation, false)
        }
    }

    /// Whether connections are few: only transfers have them, so that the next one should use one that there is.
    var sparesConnections: Bool { mostIdle == 0 }

    /// Whether the connection of a transfer that begins now is kept after it: as long as there are few, whatever its host; beyond that if its
    /// host has other URLs, since a new connection costs a round trip or two and with TLS as much processor time as several images.
    private func keepsConnection(isUsedAgain: Bool) -> Bool {
        guard !sparesConnections else { return connectionCount <= expected + stalledCount }
        // Those of transfers that ended since are not idle: the next ones take them.
        let idle = connectionCount - connected
        guard idle < mostIdle else { return false }
        return isUsedAgain || idle < Self.idlePerTransfer * expected + Self.idleBeside
    }

    func closeConnections() {
        session.removeAll()
        multi.closeConnections()
    }
}
