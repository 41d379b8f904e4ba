/// The transfers under way in curl's multi handle: which they are, and which of them are parked because nothing comes. Only the
/// downloader's thread uses it.
final class RunningTransfers {
    private let multi: CurlMulti
    private let session: CurlSession
    /// Those that wait for the disk.
    private let spooling: SpoolingTransfers
    private(set) var operations: [DownloadOperation] = []
    /// Transfers that are alive but silent; they hold no slot of the downloader.
    private(set) var parkedCount = 0
    /// When they are looked at next; infinity: none was begun yet.
    private(set) var nextCheck = Double.infinity
    private var checkInterval = 0.25

    init(_ multi: CurlMulti, session: CurlSession, spooling: SpoolingTransfers) {
        self.multi = multi
        self.session = session
        self.spooling = spooling
    }

    /// How many hold a slot now.
    var activeCount: Int { operations.count - parkedCount }

    /// Starts the transfer that the handle is set up for.
    func start(_ operation: DownloadOperation, on handle: CurlHandle, now: Double) throws(WebImageError) {
        operation.beginTransfer(on: handle)
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

    /// Takes an operation's transfer out of curl, finished or not; nothing where it has none.
    func stop(_ operation: DownloadOperation, now: @autoclosure () -> Double) {
        guard let handle = operation.handle else { return }
        operation.count(isHeldBack: handle.isPaused, now: now())
        multi.remove(handle)
        if operation.isParked { parkedCount -= 1 }
        operation.endTransfer()
        // curl may remember of one that stood still that it does.
        let isClean = !handle.isPaused
        handle.end()
        // Otherwise another one is made where it is needed.
        if isClean { session.giveBack(handle) }
        let last = operations.removeLast()
        if last !== operation {
            operations[operation.index] = last
            last.move(to: operation.index)
        }
    }

    /// Goes on with every transfer that can.
    func perform() { multi.perform() }

    /// A transfer that has ended since the last look, with its CURLcode.
    func nextFinished() -> (operation: DownloadOperation, handle: CurlHandle, code: Int32)? {
        while let (handle, code) = multi.nextFinished() {
            if let operation = handle.operation { return (operation, handle, code) }
        }
        return nil
    }

    /// Lets those go on for whose bodies the disk has room again.
    func goOn() { spooling.goOn() }

    /// Looks at all of them where it is time: parks what is silent, and says which have passed a limit.
    func check(now: Double, didPassLimit: (DownloadOperation, CurlHandle, WebImageError) -> Void) {
        guard now >= nextCheck else { return }
        // A process that was stopped (SIGSTOP, a suspended machine) finds its transfers silent for as long: that is no server's fault.
        let wasFrozen = now - nextCheck >= max(1, 4 * checkInterval)
        nextCheck = now + checkInterval
        for operation in operations {
            // A limit that one has passed may end others, too.
            guard let handle = operation.handle else { continue }
            if wasFrozen {
                handle.wasHeldBack(now: now)
                operation.count(isHeldBack: true, now: now)
            }
            // It is our own limit that keeps its bytes.
            if handle.isPaused { handle.wasHeldBack(now: now) }
            operation.count(isHeldBack: handle.isPaused, now: now)
            let limits = operation.profile.configuration
            if let error = operation.spent.check(limits, attempts: operation.attempts)
                ?? handle.check(now: now, limits: limits)
            {
                didPassLimit(operation, handle, error)
            } else {
                park(operation, handle.response.progress, now: now, limits: limits)
            }
        }
    }

    private func park(
        _ operation: DownloadOperation, _ progress: TransferProgress, now: Double, limits: ImageDownloader.Configuration
    ) {
        // A host that is there makes a connection in much less time than some take for an answer.
        let patience = limits.parkAfter / (progress.requestWasSent ? 1 : 4)
        let isSilent = now - progress.lastByte >= patience
        if isSilent && !operation.isParked && parkedCount < limits.maxParkedDownloads {
            operation.setParked(true)
            parkedCount += 1
        } else if !isSilent && operation.isParked {
            operation.setParked(false)
            parkedCount -= 1
        }
    }

    /// How many connections are kept, used ones included.
    func setConnectionLimit(_ count: Int) { multi.setConnectionLimit(count) }

    /// Closes every connection; nothing may run.
    func closeConnections() {
        session.removeAll()
        multi.closeConnections()
    }
}
