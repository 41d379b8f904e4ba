internal import Glibc
internal import HeapModule
internal import Threading

/// What a downloader's thread does: the life of each download from its first caller to its result.
///
/// ``download(_:request:parameters:for:)`` makes an operation and has ``DownloadAdmission`` let it in. Each ``turn()`` of the thread
/// takes those out whose turn has come and starts their transfers, then lets curl go on; what curl has finished becomes a
/// ``TransferEnd``, and with that the operation is completed, goes on to its next hop, or waits for its next try.
final class DownloadLoop {
    /// An operation that waits for its next try.
    private struct Retry: Comparable {
        let due: Double
        let number: Int
        let operation: DownloadOperation

        static func < (lhs: Self, rhs: Self) -> Bool { (lhs.due, lhs.number) < (rhs.due, rhs.number) }
        static func == (lhs: Self, rhs: Self) -> Bool { lhs.number == rhs.number }
    }

    /// How requests are made whose callers ask for nothing else.
    private(set) var profile: RequestProfile
    private let admission: DownloadAdmission
    private let session: CurlSession
    private let transfers: RunningTransfers
    private let listeners: DownloadListeners
    private let closed: ClosedPlaces
    private var addresses: AddressGate
    /// Transfers that may hold a slot at once.
    private var limit: Int
    /// Connections that are kept, used ones included.
    private var connectionLimit: Int
    private var isThreadPrepared = false
    private var operations: [DownloadOperation.Key: DownloadOperation] = [:]
    private var retries = Heap<Retry>()
    private var nextRetry = 0
    private var now = 0.0
    /// Sites that have completed a body.
    private var delivering = DeliveringSites()
    /// Sites whose certificate was refused.
    private var untrusted = UntrustedSites()
    /// Who waits until no download is left.
    private var idleWaiters: [UnsafeContinuation<Void, Never>] = []

    init(
        _ configuration: ImageDownloader.Configuration, admission: DownloadAdmission, session: CurlSession,
        transfers: RunningTransfers, listeners: DownloadListeners, closed: ClosedPlaces
    ) {
        profile = RequestProfile(configuration)
        self.admission = admission
        self.session = session
        self.transfers = transfers
        self.listeners = listeners
        self.closed = closed
        addresses = AddressGate(configuration, closed: closed)
        limit = configuration.maxConcurrentDownloads
        connectionLimit = configuration.connectionLimit(limit)
        transfers.setConnectionLimit(connectionLimit)
    }

    /// How it works.
    var configuration: ImageDownloader.Configuration { profile.configuration }

    // MARK: A download begins

    /// Has a caller wait for the operation of the same key, or for a new one.
    /// * `own`: how its requests are made; nil: as those of all.
    /// - Throws: what the request's modifier makes of it.
    func download(
        _ key: DownloadOperation.Key, profile own: RequestProfile?, request: RequestURL,
        parameters: DownloadOperation.Parameters, for call: DownloadCall
    ) throws(WebImageError) {
        if let operation = operations[key] { return operation.add(call, listeners: listeners) }
        let profile = own ?? profile
        let (request, headers) = try profile.configuration.modifiedRequest(key, request)
        let operation = DownloadOperation(
            key: key, profile: profile, start: request, requestHeaders: headers, parameters: parameters)
        operations[key] = operation
        // Before it is let in: where the site forbids it, it ends at once.
        operation.add(call, listeners: listeners)
        operation.beginAttempt()
        enter(operation, at: .inOrder)
    }

    /// Every hop of every try enters here.
    private func enter(_ operation: DownloadOperation, at place: QueuePlace) {
        if let error = admission.enter(operation, at: place) { complete(operation, .failure(error)) }
    }

    // MARK: A turn of the thread

    /// One round of the thread; returns how long it may sleep, in milliseconds.
    func turn() -> Int32 {
        if !isThreadPrepared { prepareThread() }
        now = MonotonicClock.now
        transfers.check(now: now) { didPassLimit($0, $1, $2) }
        retryWhatIsDue()
        admission.wake(now: now)
        transfers.goOn()
        var admitted = admit()
        admission.makeCalls()
        if transfers.operations.isEmpty && admitted == 0 { return sleepMilliseconds }
        repeat {
            transfers.perform()
            admitted = finishTransfers() ? admit() : 0
        } while admitted > 0
        admission.makeCalls()
        return sleepMilliseconds
    }

    private var sleepMilliseconds: Int32 {
        var next = min(retries.min?.due ?? .infinity, admission.nextWake)
        if !transfers.operations.isEmpty { next = min(next, transfers.nextCheck) }
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

    private func retryWhatIsDue() {
        while let retry = retries.min, retry.due <= now {
            retries.removeMin()
            if !retry.operation.waiters.isEmpty {
                retry.operation.beginAttempt()
                // Whether a host is there is tried with another URL next: this one may be what it never answers.
                enter(retry.operation, at: retry.operation.metSilence ? .last : .first)
            }
        }
    }

    /// Starts what waits while there are slots; returns how many were started.
    private func admit() -> Int {
        var started = 0
        while transfers.activeCount < limit, let (operation, refusal) = admission.hosts.next() {
            if operation.isRevoked {
                // Nobody waits for it any more, or none of those who do may begin anything.
                admission.hosts.release(operation)
                complete(operation, .failure(.downloadCancelled))
            } else if var error = certificateRefusal(of: operation) ?? refusal {
                error.attempts = operation.attempts - 1
                admission.hosts.release(operation)
                complete(operation, .failure(error))
            } else if start(operation) {
                started += 1
            }
        }
        return started
    }

    /// Why an operation ends without a request: its site's certificate was refused.
    private func certificateRefusal(of operation: DownloadOperation) -> WebImageError? {
        guard asksForTrust(operation) else { return nil }
        return untrusted.refusal(of: operation.request.origin, now: MonotonicClock.now)
    }

    private func asksForTrust(_ operation: DownloadOperation) -> Bool {
        !untrusted.isEmpty && operation.request.scheme == "https"
            && !operation.key.options.contains(.allowInvalidSSLCertificates)
    }

    private func start(_ operation: DownloadOperation) -> Bool {
        do throws(WebImageError) {
            let isNamed = try addresses.admit(operation.request)
            let handle = try session.takeHandle(for: operation, bandwidth: admission.bandwidth)
            if !operation.hasBegun { listeners.tell(.start, of: operation, received: 0, expected: nil) }
            session.begin(operation, on: handle, isNamedByOperator: isNamed, now: now)
            try transfers.start(operation, on: handle, now: now)
            return true
        } catch {
            admission.hosts.release(operation)
            fail(operation, error)
            return false
        }
    }

    // MARK: A transfer ends

    private func finishTransfers() -> Bool {
        var didFinish = false
        while let (operation, handle, code) = transfers.nextFinished() {
            noteEnd(of: operation, on: handle)
            didEnd(operation, handle, handle.finish(operation, code: code))
            didFinish = true
        }
        return didFinish
    }

    private func didPassLimit(_ operation: DownloadOperation, _ handle: CurlHandle, _ error: WebImageError) {
        noteEnd(of: operation, on: handle)
        if let end = handle.finishWithoutBody(operation) { return didEnd(operation, handle, end) }
        handle.response.keepPartial(handle.info, of: operation, error: error)
        stop(operation)
        fail(operation, error)
    }

    /// Keeps what a `stop` says of the last transfer.
    private func noteEnd(of operation: DownloadOperation, on handle: CurlHandle) {
        if !listeners.isEmpty { operation.noteEnd(handle.info) }
    }

    private func didEnd(_ operation: DownloadOperation, _ handle: CurlHandle, _ end: TransferEnd) {
        switch end {
        case .image(let image):
            delivering.insert(operation.request.origin)
            didAnswer(operation, nil, firstByte: handle.info.firstByte)
            stop(operation)
            complete(operation, .success(image))
        case .redirect(let location):
            didAnswer(operation, nil, firstByte: nil)
            stop(operation)
            follow(location, of: operation)
        case .failure(let error):
            handle.response.keepPartial(handle.info, of: operation, error: error)
            // Who sends a part of an answer is there.
            if error.httpStatus != nil || handle.response.progress.bytes > 0 {
                didAnswer(operation, error, firstByte: nil)
            }
            stop(operation)
            noteCertificate(of: operation, error)
            fail(operation, error)
        }
    }

    /// A response came. Before its transfer gives back its slots.
    private func didAnswer(
        _ operation: DownloadOperation, _ error: WebImageError?, firstByte: @autoclosure () -> Double?
    ) {
        if asksForTrust(operation) { untrusted.didTrust(operation.request.origin) }
        admission.hosts.didAnswer(operation, error, firstByte: firstByte())
    }

    /// Ends the operation's transfer and gives its slots back; nothing where there is none.
    private func stop(_ operation: DownloadOperation) {
        transfers.stop(operation, now: MonotonicClock.now)
        admission.hosts.release(operation)
    }

    /// A transfer ended: with a certificate that curl did not verify the site's other URLs end, too, those that wait for a connection
    /// to it at once. curl's codes for that: PEER_FAILED_VERIFICATION, SSL_ISSUER_ERROR, SSL_INVALIDCERTSTATUS.
    private func noteCertificate(of operation: DownloadOperation, _ error: WebImageError) {
        let site = operation.request.origin
        guard error.code == .secureConnectionFailed, [60, 83, 91].contains(error.underlyingCode),
            untrusted.didRefuse(
                site, error, isDelivering: delivering.contains(site), now: MonotonicClock.now)
        else { return }
        for other in transfers.operations
        where other.request.origin == site && !other.progress.requestWasSent && asksForTrust(other) {
            stop(other)
            var error = error
            error.attempts = other.attempts
            complete(other, .failure(error))
        }
    }

    /// Every hop goes through the queue and the checks of a first one.
    private func follow(_ location: String, of operation: DownloadOperation) {
        let most = operation.profile.configuration.maxRedirects
        guard operation.redirects < most else {
            return fail(operation, WebImageError(.tooManyRedirects, "more than \(most) redirects"))
        }
        do throws(WebImageError) {
            operation.follow(try operation.request.redirected(to: location))
        } catch {
            return fail(operation, error)
        }
        enter(operation, at: .first)
    }

    /// A try has failed: the next one comes after a pause, or the download ends.
    private func fail(_ operation: DownloadOperation, _ error: WebImageError) {
        admission.hosts.didFail(operation, error)
        let pause = operation.profile.retryPolicy.delay(
            afterAttempts: operation.countedAttempts, error: error, random: Double.random(in: 0...1))
        guard let pause, mayTryAgain(operation, error) else {
            var error = error
            error.attempts = operation.attempts
            return complete(operation, .failure(error))
        }
        operation.pause(until: now + pause, after: error, now: now)
        nextRetry += 1
        retries.insert(Retry(due: now + pause, number: nextRetry, operation: operation))
    }

    /// Whether another try may begin: the URL has time left, and was not too slow on a host that has completed no body. There a further
    /// try would give a server that drips its bytes as long again; a merely silent one is asked again while its URL has taken less than
    /// ``ImageDownloader/Configuration/lowSpeedTime``, so that with the defaults such URLs end within 35 s.
    private func mayTryAgain(_ operation: DownloadOperation, _ error: WebImageError) -> Bool {
        let limits = operation.profile.configuration
        if operation.spent.check(limits, attempts: operation.attempts) != nil { return false }
        let progress = operation.progress
        guard error.code == .timedOut, progress.requestWasSent, !delivering.contains(operation.request.origin) else {
            return true
        }
        return !progress.wasTooSlow && operation.spent.seconds < limits.lowSpeedTime
    }

    // MARK: A download ends

    private func complete(_ operation: DownloadOperation, _ result: Result<DownloadedImage, WebImageError>) {
        admission.hosts.endProbe(of: operation)
        // One that ended while it was in the backlog is taken out of that later.
        guard let index = operations.index(forKey: operation.key), operations[index].value === operation else { return }
        operations.remove(at: index)
        listeners.tellEnd(of: operation, result)
        operation.end(result)
        wakeIdleWaiters()
    }

    /// A caller waits no longer; the transfer ends with the last one.
    func cancel(_ call: DownloadCall, of key: DownloadOperation.Key) {
        guard let operation = operations[key], operation.cancel(call), operation.waiters.isEmpty else { return }
        // What is in the backlog or waits for its next try is skipped when its turn comes.
        stop(operation)
        complete(operation, .failure(.downloadCancelled))
    }

    /// Ends every download with `cancelled`.
    func cancelAll() {
        for operation in Array(operations.values) {
            stop(operation)
            complete(operation, .failure(.downloadCancelled))
        }
        admission.hosts.removeAll()
        retries = Heap()
    }

    /// Ends every download that has no transfer under way and whose callers have all lost their permit.
    func endRevoked() {
        for operation in Array(operations.values) where operation.handle == nil && operation.isRevoked {
            complete(operation, .failure(.downloadCancelled))
        }
    }

    /// Ends those that a robots.txt has refused.
    func end(_ refused: DownloadAdmission.Refused) {
        for (operation, error) in refused { complete(operation, .failure(error)) }
    }

    /// Resumes it when no download is left; there must be one.
    func whenIdle(_ waiter: UnsafeContinuation<Void, Never>) { idleWaiters.append(waiter) }

    private func wakeIdleWaiters() {
        guard operations.isEmpty, !idleWaiters.isEmpty else { return }
        for waiter in idleWaiters { waiter.resume() }
        idleWaiters = []
    }

    // MARK: What it does now

    /// What the downloads are doing at one moment.
    var activity: ImageDownloader.Activity {
        let active = transfers.activeCount
        let waiting = max(0, operations.count - transfers.operations.count - retries.count)
        return ImageDownloader.Activity(
            running: active, parked: transfers.parkedCount, retrying: retries.count,
            waitingForHost: active < limit ? waiting : 0, operations: operations.count)
    }

    /// What downloads of these URLs wait for; of those that are not under way nothing.
    func states(of urls: Set<String>) -> [String: DownloadState] {
        let time = MonotonicClock.now
        var states: [String: DownloadState] = [:]
        for operation in operations.values where urls.contains(operation.key.url) {
            states[operation.key.url] = state(of: operation, at: time)
        }
        return states
    }

    private func state(of operation: DownloadOperation, at time: Double) -> DownloadState {
        if operation.handle != nil {
            let progress = operation.progress
            guard operation.isParked else {
                return DownloadState(operation, .transferring, since: progress.hopStart, at: time)
            }
            var silent = DownloadState(operation, .parked, since: progress.lastByte, at: time)
            let end =
                progress.requestWasSent
                ? progress.lastByte + operation.profile.configuration.downloadTimeout
                : progress.hopStart + operation.profile.configuration.connectTimeout
            silent.remaining = max(0, end - time)
            return silent
        }
        guard let pause = operation.pause else { return admission.state(of: operation, at: time) }
        var waiting = DownloadState(operation, .retrying, at: time)
        waiting.remaining = max(0, pause.due - time)
        waiting.reason = pause.error.message + (pause.error.retryAfter == nil ? "" : " (Retry-After)")
        return waiting
    }

    // MARK: How it works

    /// Changes the number of transfers at once; those beyond a lower number end by themselves.
    /// * `isSuspended`: nothing begins, whatever the number.
    func setLimit(_ count: Int, isSuspended: Bool) {
        limit = isSuspended ? 0 : count
        connectionLimit = configuration.connectionLimit(count)
        transfers.setConnectionLimit(connectionLimit)
    }

    /// Changes the headers and the order of requests that begin from now on.
    func apply(_ new: ImageDownloader.Configuration) {
        profile = RequestProfile(new)
        admission.hosts.apply(new)
    }

    /// Begins anew: every download ends with `cancelled`, every connection is closed.
    /// * `new`: nil: as it was. Its number of transfers is for ``setLimit(_:isSuspended:)``.
    func beginSession(_ new: ImageDownloader.Configuration?) {
        cancelAll()
        closeConnections()
        guard let new else { return }
        profile = RequestProfile(new)
        addresses = AddressGate(new, closed: closed)
        session.apply(new)
        admission.beginSession(new)
    }

    /// Closes the connections that are kept for later transfers, where none is under way.
    func closeIdleConnections() {
        if transfers.operations.isEmpty { closeConnections() }
    }

    private func closeConnections() {
        transfers.closeConnections()
        transfers.setConnectionLimit(connectionLimit)
    }
}
