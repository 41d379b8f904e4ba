internal import Glibc
internal import HeapModule
internal import Threading

// What the downloader's thread does between two sleeps.
extension ImageDownloader {
    /// One round of the thread; returns how long it may sleep, in milliseconds.
    func turn() -> Int32 {
        if !isThreadPrepared { prepareThread() }
        now = MonotonicClock.now
        if now >= nextCheck { checkTransfers() }
        while let retry = retries.min, retry.due <= now {
            retries.removeMin()
            if !retry.operation.waiters.isEmpty {
                retry.operation.beginAttempt()
                // Whether a host is there is tried with another URL next: this one may be what it never answers.
                enter(retry.operation, at: retry.operation.metSilence ? .last : .first)
            }
        }
        letHostsGo()
        robots?.lookAgain(now: now)
        bandwidth?.goOn()
        spooling.goOn()
        var admitted = admit()
        callAboutHosts()
        if running.isEmpty && admitted == 0 { return sleepMilliseconds }
        repeat {
            multi.perform()
            admitted = readMessages() ? admit() : 0
        } while admitted > 0
        callAboutHosts()
        return sleepMilliseconds
    }

    private var sleepMilliseconds: Int32 {
        var next = retries.min?.due ?? .infinity
        if !running.isEmpty { next = min(next, nextCheck) }
        if let bandwidth { next = min(next, bandwidth.nextTime) }
        if let governor { next = min(next, governor.nextWake) }
        if let shares { next = min(next, shares.nextWake) }
        if let robots { next = min(next, robots.nextLook) }
        guard next < .infinity else { return 3_600_000 }
        return Int32(max(1, min(3_600_000, ((next - MonotonicClock.now) * 1000).rounded(.up))))
    }

    /// For every downloader's thread, so never freed.
    private static let hostNameLocale = newlocale(Int32(LC_CTYPE_MASK), "C.UTF-8", nil).map {
        SendablePointer(UnsafeMutableRawPointer($0))
    }

    private func prepareThread() {
        isThreadPrepared = true
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        // libidn2 reads international host names in the thread's locale; the process's stays as it is.
        if let locale = Self.hostNameLocale { uselocale(locale_t(OpaquePointer(locale.pointer))) }
    }

    /// Starts what waits while there are slots; returns how many were started.
    private func admit() -> Int {
        var started = 0
        while !isSuspended, activeDownloadCount < maxConcurrentDownloads, let operation = nextToBegin() {
            operation.slotHost = operation.host
            if operation.isRevoked {
                // Nobody waits for it any more, or none of those who do may begin anything.
                releaseSlot(of: operation)
                complete(operation, .failure(.downloadCancelled))
            } else if let error = refusal(of: operation) {
                releaseSlot(of: operation)
                complete(operation, .failure(error))
            } else if startTransfer(of: operation) {
                started += 1
            }
        }
        return started
    }

    private func readMessages() -> Bool {
        var didRead = false
        while let (handle, code) = multi.nextFinished() {
            guard let operation = handle.operation else { continue }
            didFinishTransfer(of: operation, on: handle, code: code)
            didRead = true
        }
        return didRead
    }

    /// Ends what passed a limit, and parks what is silent.
    private func checkTransfers() {
        // A process that was stopped (SIGSTOP, a suspended machine) finds its transfers silent for as long: that is no server's fault.
        let wasFrozen = now - nextCheck >= max(1, 4 * checkInterval)
        nextCheck = now + checkInterval
        for operation in running {
            if wasFrozen { operation.wasFrozen(now: now) }
            if let error = operation.check(now: now, limits: configuration) {
                let handle = operation.handle
                if let handle, operation.headerIsComplete { operation.judge(handle) }
                if let handle, operation.headerIsComplete, handle.status >= 200, !operation.isWanted {
                    // The status is known: it counts, not the body that does not come.
                    didFinishTransfer(of: operation, on: handle, code: TransferEnd.timedOut)
                } else {
                    if let handle {
                        noteEnd(of: operation, on: handle)
                        operation.keepPartial(handle, least: configuration.resumeFrom, error: error)
                    }
                    stopTransfer(of: operation)
                    fail(operation, error)
                }
                continue
            }
            // A host that is there makes a connection in much less time than some take for an answer.
            let patience = configuration.parkAfter / (operation.progress.requestWasSent ? 1 : 4)
            let isSilent = now - operation.progress.lastByte >= patience
            if isSilent && !operation.isParked && parkedCount < configuration.maxParkedDownloads {
                operation.isParked = true
                parkedCount += 1
            } else if !isSilent && operation.isParked {
                operation.isParked = false
                parkedCount -= 1
            }
        }
    }
}
