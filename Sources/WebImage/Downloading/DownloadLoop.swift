internal import Glibc
internal import HeapModule
internal import Threading

/// The logic of a downloader's thread: the life of each download from its first caller to its result.
///
/// ``download(_:request:parameters:for:)`` creates an operation and passes it to ``DownloadAdmission``. Each ``turn()`` of the thread
/// starts the transfers whose turn has come and then runs curl. A finished transfer becomes a ``TransferEnd``, after which the operation is
/// completed, continues with its next hop, or waits for a retry.
final class DownloadLoop {
    private struct Retry: Comparable {
        let due: Double
        let number: Int
        let operation: DownloadOperation

        static func < (lhs: Self, rhs: Self) -> Bool { (lhs.due, lhs.number) < (rhs.due, rhs.number) }
        static func == (lhs: Self, rhs: Self) -> Bool { lhs.number == rhs.number }
    }

    private(set) var profile: RequestProfile
    private let admission: DownloadAdmission
    private let session: CurlSession
    private let transfers: RunningTransfers
    private let unchecked: UncheckedBodies
    private let listeners: DownloadListeners
    private let proven: ProvenSites
    private let silent: SilentHosts
    private var limit: Int
    private var excusesConnects = false
    private var sites: SiteBook
    private var isThreadPrepared = false
    private var operations: [DownloadOperation.Key: DownloadOperation] = [:]
    private var retries = Heap<Retry>()
    private var nextRetry = 0
    /// How many operations wait for a retry; those that have ended stay in ``retries`` until they are due.
    private var retrying = 0
    private var now = 0.0
    private var untrusted = UntrustedSites()
    private let refusedConnects = RefusedConnects()
    private let tally: TransferTally
    private var idleWaiters: [UnsafeContinuation<Void, Never>] = []
    /// Callers that have their result, from this and earlier turns, for ``handOver()``: resumed together, they wake their threads once.
    private var ended: [DownloadCaller] = []
    private static let mostEnded = 8
    private var isInTurn = false
    /// Since when there has been something to download.
    private var busySince = 0.0
    private var nextSilenceCheck = 0.0
    private var work = TransferWork()

    init(
        _ configuration: ImageDownloader.Configuration, admission: DownloadAdmission, session: CurlSession,
        transfers: RunningTransfers, unchecked: UncheckedBodies, tally: TransferTally, listeners: DownloadListeners,
        proven: ProvenSites, silent: SilentHosts
    ) {
        profile = RequestProfile(configuration)
        sites = SiteBook(configuration.addressPolicy)
        self.admission = admission
        self.session = session
        self.transfers = transfers
        self.unchecked = unchecked
        self.tally = tally
        self.listeners = listeners
        self.proven = proven
        self.silent = silent
        limit = configuration.maxConcurrentDownloads
        transfers.setLimits(
            expected: limit, mostIdle: configuration.idleConnections, mostStalled: configuration.maxStalledDownloads)
    }

    // MARK: Start of a download

    /// Adds a caller to the operation with the same key, or to a new one.
    /// * `own`: profile of its requests; nil: the default.
    /// - Throws: errors of the request modifier.
    func download(
        _ key: DownloadOperation.Key, profile own: RequestProfile?, request: RequestURL,
        parameters: DownloadOperation.Parameters, for call: DownloadCaller
    ) throws(WebImageError) {
        if !isThreadPrepared { prepareThread() }
        if let operation = operations[key] { return operation.add(call, listeners: listeners) }
        let profile = own ?? profile
        let (request, headers) = try profile.modifiedRequest(key, request)
        let operation = DownloadOperation(
            key: key, profile: profile, start: request, at: sites.site(of: request), requestHeaders: headers,
            parameters: parameters)
        if operations.isEmpty { busySince = MonotonicClock.now }
        operations[key] = operation
        // Before admission, which may end it immediately.
        operation.add(call, listeners: listeners)
        operation.beginTry()
        enter(operation, at: .inOrder)
    }

    private func enter(_ operation: DownloadOperation, at place: QueuePlace) {
        if !operation.key.options.contains(.unasked),
            let refusal = operation.profile.refusal(of: operation.request)
        {
            return complete(operation, .failure(operation.refused(refusal)))
        }
        if let error = admission.enter(operation, at: place) { complete(operation, .failure(error)) }
    }

    // MARK: Turn of the thread

    /// One round of the thread; returns how long it may sleep, in milliseconds, and whether ``handOver()`` must be called before that.
    func turn() -> (sleep: Int32, hasResults: Bool) {
        isInTurn = true
        defer { isInTurn = false }
        let sleep = runTransfers()
        if ended.count >= Self.mostEnded || transfers.operations.isEmpty { handOver() }
        return (sleep, !ended.isEmpty)
    }

    /// Resumes the callers of all downloads that have ended.
    func handOver() {
        for caller in ended { caller.resume() }
        ended.removeAll(keepingCapacity: true)
        wakeIdleWaiters()
    }

    private func runTransfers() -> Int32 {
        now = MonotonicClock.now
        transfers.check(now: now, didPassLimit: didPassLimit, isReceiving: isReceiving)
        retryWhatIsDue()
        checkSilentHosts()
        end(admission.wake(now: now))
        transfers.goOn()
        var admitted = admit()
        // After the free slots were taken.
        if work.isDue(now), !transfers.operations.isEmpty { work.add(stages, now: now) }
        admission.deliverMessages()
        if transfers.operations.isEmpty && admitted == 0 { return sleepMilliseconds }
        repeat {
            transfers.perform()
            admitted = finishTransfers() ? admit() : 0
        } while admitted > 0
        admission.deliverMessages()
        return sleepMilliseconds
    }

    private var sleepMilliseconds: Int32 {
        let now = MonotonicClock.now
        var next = min(retries.min?.due ?? .infinity, admission.nextWake(now: now))
        if !transfers.operations.isEmpty { next = min(next, transfers.nextCheck) }
        if !silent.isEmpty, !operations.isEmpty { next = min(next, nextSilenceCheck) }
        guard next < .infinity else { return 3_600_000 }
        return Int32(max(1, min(3_600_000, ((next - now) * 1000).rounded(.up))))
    }

    /// Shared by all downloader threads, so never freed.
    private static let hostNameLocale = newlocale(Int32(LC_CTYPE_MASK), "C.UTF-8", nil).map {
        SendablePointer(UnsafeMutableRawPointer($0))
    }

    private func prepareThread() {
        isThreadPrepared = true
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        // libidn2 reads international host names in the thread's locale; that of the process stays unchanged.
        if let locale = Self.hostNameLocale { uselocale(locale_t(OpaquePointer(locale.pointer))) }
    }

    /// Once a second while a host does not respond: whether other hosts have downloads left.
    private func checkSilentHosts() {
        guard !silent.isEmpty, now >= nextSilenceCheck else { return }
        nextSilenceCheck = now + 1
        var seconds: Double?
        if usedSlots < limit, operations.values.allSatisfy({ silent.contains($0.host) }) {
            let timeout = operations.values.lazy.map(\.profile.configuration.downloadTimeout).max() ?? 0
            seconds = max(2 * timeout, (now - busySince) / 4)
        }
        silent.shortenWait(to: seconds)
    }

    private func retryWhatIsDue() {
        while let retry = retries.min, retry.due <= now {
            retries.removeMin()
            if !retry.operation.waiters.isEmpty {
                retrying -= 1
                retry.operation.beginTry()
                // After the first tries of its host: another URL may be answered.
                enter(retry.operation, at: .last)
            }
        }
    }

    private func admit() -> Int {
        var started = 0
        while !unchecked.areSlotsFull(limit: limit, active: transfers.activeCount),
            let (operation, refusal, isAwaited) = admission.hosts.next()
        {
            if operation.isRevoked {
                // It has no callers left, or only callers with revoked permits.
                admission.hosts.release(operation)
                complete(operation, .failure(.downloadCancelled))
            } else if var error = certificateRefusal(of: operation) ?? refusal {
                error.tries = operation.tries - 1
                admission.hosts.release(operation)
                complete(operation, .failure(error))
            } else if start(operation, isAwaited: isAwaited) {
                started += 1
            }
        }
        return started
    }

    private func certificateRefusal(of operation: DownloadOperation) -> WebImageError? {
        guard verifiesCertificate(operation) else { return nil }
        return untrusted.refusal(of: operation.request.origin, now: MonotonicClock.now)
    }

    private func verifiesCertificate(_ operation: DownloadOperation) -> Bool {
        !untrusted.isEmpty && operation.request.scheme == "https"
            && !operation.key.options.contains(.allowInvalidSSLCertificates)
    }

    private func start(_ operation: DownloadOperation, isAwaited: Bool) -> Bool {
        do throws(WebImageError) {
            guard let route = try admission.names.route(to: operation, now: now) else {
                askNameAgain(of: operation)
                return false
            }
            let handle = try session.takeHandle(for: operation, bandwidth: admission.bandwidth)
            if !operation.hasBegun { listeners.tell(.start, of: operation, received: 0, expected: nil) }
            session.begin(operation, on: handle, route: route, now: now)
            let isUsedAgain = isAwaited || proven.contains(operation.request.origin)
            try transfers.start(operation, on: handle, isUsedAgain: isUsedAgain, now: now)
            return true
        } catch {
            admission.hosts.release(operation)
            fail(operation, error)
            return false
        }
    }

    /// Its addresses have lapsed while it waited for its host.
    private func askNameAgain(of operation: DownloadOperation) {
        admission.hosts.release(operation)
        admission.hosts.endProbe(of: operation)
        if let error = admission.enter(operation, at: .first) { complete(operation, .failure(error)) }
    }

    // MARK: End of a transfer

    private func finishTransfers() -> Bool {
        var didFinish = false
        while let (operation, handle, code) = transfers.nextFinished() {
            recordEnd(of: operation, on: handle)
            didEnd(operation, handle, handle.finish(operation, code: code))
            didFinish = true
        }
        return didFinish
    }

    private func didPassLimit(_ operation: DownloadOperation, _ handle: CurlHandle, _ error: WebImageError) {
        recordEnd(of: operation, on: handle)
        if let end = handle.finishWithoutBody(operation) { return didEnd(operation, handle, end) }
        tally.count(operation, error)
        handle.response.keepPartial(handle.info, of: operation, error: error)
        stop(operation)
        fail(operation, error)
    }

    /// The host has answered, however slowly it sends the rest.
    private func isReceiving(_ operation: DownloadOperation, _ handle: CurlHandle) {
        guard (200..<300).contains(handle.info.status) else { return }
        admission.hosts.didAnswer(operation, nil, firstByte: handle.info.firstByte, goesOn: true)
    }

    private func recordEnd(of operation: DownloadOperation, on handle: CurlHandle) {
        if !listeners.isEmpty { operation.recordEnd(handle.info) }
    }

    private func didEnd(_ operation: DownloadOperation, _ handle: CurlHandle, _ end: TransferEnd) {
        switch end {
        case .image(let image):
            tally.count(operation, nil)
            proven.insert(operation.request.origin)
            didAnswer(operation, nil, firstByte: handle.info.firstByte)
            stop(operation, wasAnswered: true)
            complete(operation, .success(image))
        case .redirect(let location):
            tally.count(operation, nil)
            didAnswer(operation, nil, firstByte: nil)
            stop(operation, wasAnswered: true)
            follow(location, of: operation)
        case .again:
            tally.count(operation, nil)
            didAnswer(operation, nil, firstByte: nil)
            stop(operation)
            operation.keep(nil)
            enterAgain(operation)
        case .failure(let error):
            tally.count(operation, error)
            handle.response.keepPartial(handle.info, of: operation, error: error)
            // A partial response proves that the host is reachable.
            if error.httpStatus != nil || handle.response.progress.bytes > 0 && !error.isFlood {
                didAnswer(operation, error, firstByte: nil)
            }
            stop(operation, wasAnswered: error.httpStatus != nil)
            recordCertificateFailure(of: operation, error)
            fail(operation, error)
        }
    }

    /// Records a response. Call it before the transfer's slots are released.
    private func didAnswer(
        _ operation: DownloadOperation, _ error: WebImageError?, firstByte: @autoclosure () -> Double?
    ) {
        if verifiesCertificate(operation) { untrusted.didTrust(operation.request.origin) }
        refusedConnects.didAnswer(operation.host, now: now)
        admission.hosts.didAnswer(operation, error, firstByte: firstByte())
    }

    /// Stops the operation's transfer, if any, and releases its slots.
    /// * `wasAnswered`: its connection may be used again.
    private func stop(_ operation: DownloadOperation, wasAnswered: Bool = false) {
        let comesFirst = wasAnswered && transfers.sparesConnections && operation.keepsConnection
        transfers.stop(operation, now: MonotonicClock.now)
        admission.hosts.release(operation, comesFirst: comesFirst)
    }

    /// If the certificate could not be verified, the site's other URLs end too, those that wait for a connection immediately. curl's codes:
    /// PEER_FAILED_VERIFICATION, SSL_ISSUER_ERROR, SSL_INVALIDCERTSTATUS.
    private func recordCertificateFailure(of operation: DownloadOperation, _ error: WebImageError) {
        let site = operation.request.origin
        guard error.code == .secureConnectionFailed, [60, 83, 91].contains(error.underlyingCode),
            untrusted.didRefuse(
                site, error, isProven: proven.contains(site), now: MonotonicClock.now)
        else { return }
        for other in transfers.operations
        where other.request.origin == site && !other.progress.requestWasSent && verifiesCertificate(other) {
            stop(other)
            var error = error
            error.tries = other.tries
            complete(other, .failure(error))
        }
    }

    /// Every hop goes through the queue and the checks of the first one.
    private func follow(_ location: String, of operation: DownloadOperation) {
        let most = operation.profile.configuration.maxRedirects
        guard operation.redirects < most else {
            return fail(operation, WebImageError(.tooManyRedirects, "more than \(most) redirects", reason: .redirects))
        }
        do throws(WebImageError) {
            let next = try operation.request.redirected(to: location)
            operation.follow(next, to: sites.site(of: next))
        } catch {
            return fail(operation, error)
        }
        enterAgain(operation)
    }

    /// Another request of the same try.
    private func enterAgain(_ operation: DownloadOperation) {
        guard !operation.isRevoked else { return complete(operation, .failure(.downloadCancelled)) }
        enter(operation, at: .first)
    }

    private func fail(_ operation: DownloadOperation, _ failure: WebImageError) {
        var error = failure
        if operation.redirects > 0 { error.page?.place = operation.request.place }
        let isExcused = error.code == .cannotConnectToHost && (lacksConnections(operation) || excusesConnects)
        admission.hosts.didFail(operation, error, excusesConnects: isExcused)
        let pause = operation.profile.retryPolicy.delay(
            afterTries: operation.countedTries, excused: operation.excused, error: error,
            random: Double.random(in: 0...1))
        guard let pause, mayTryAgain(operation, error) else {
            error.tries = operation.tries
            return complete(operation, .failure(error))
        }
        // Nobody would wait for it.
        guard !operation.isRevoked else { return complete(operation, .failure(.downloadCancelled)) }
        operation.pause(until: now + pause, after: error, now: now)
        nextRetry += 1
        retrying += 1
        retries.insert(Retry(due: now + pause, number: nextRetry, operation: operation))
    }

    /// Whether a connect was refused because there are too many connections.
    private func lacksConnections(_ operation: DownloadOperation) -> Bool {
        let isConnected = transfers.operations.contains { $0.site === operation.site && $0.progress.requestWasSent }
        return refusedConnects.add(operation.host, isConnected: isConnected, now: now)
    }

    /// Whether a retry is allowed: the URL has time left, and was not too slow on a host that has never completed a body. A retry would
    /// give a server that drips bytes the same time again; a merely silent one is retried while its URL has taken less than
    /// ``ImageDownloader/Configuration/lowSpeedTime``, so that with the defaults such URLs end within 35 s.
    private func mayTryAgain(_ operation: DownloadOperation, _ error: WebImageError) -> Bool {
        let limits = operation.profile.configuration
        if operation.spent.check(limits, tries: operation.tries) != nil { return false }
        let progress = operation.progress
        guard error.code == .timedOut, progress.requestWasSent,
            !proven.contains(operation.request.origin)
        else {
            return true
        }
        return !progress.wasTooSlow && operation.spent.seconds < limits.lowSpeedTime
    }

    // MARK: End of a download

    private func complete(_ operation: DownloadOperation, _ result: Result<DownloadedImage, WebImageError>) {
        admission.hosts.endProbe(of: operation)
        // Wherever it waits.
        admission.names.leave(operation)
        admission.hosts.leave(operation)
        guard let index = operations.index(forKey: operation.key), operations[index].value === operation else { return }
        operations.remove(at: index)
        if operation.pause != nil { retrying -= 1 }
        listeners.publishEnd(of: operation, result)
        ended += operation.end(result)
        // Nothing else follows a call from outside a turn.
        if !isInTurn { handOver() }
    }

    /// Removes a caller; the transfer stops with the last one.
    func cancel(_ call: DownloadCaller, of key: DownloadOperation.Key) {
        guard let operation = operations[key], operation.cancel(call), operation.waiters.isEmpty else { return }
        stop(operation)
        complete(operation, .failure(.downloadCancelled))
    }

    func cancelAll() {
        admission.names.removeAll()
        for operation in Array(operations.values) {
            stop(operation)
            complete(operation, .failure(.downloadCancelled))
        }
        retries = Heap()
    }

    /// Ends every download without a running transfer whose callers have all lost their permit.
    func endRevoked() {
        for operation in Array(operations.values) where operation.handle == nil && operation.isRevoked {
            complete(operation, .failure(.downloadCancelled))
        }
    }

    func end(_ refused: DownloadAdmission.Refused) {
        for (operation, error) in refused { complete(operation, .failure(error)) }
    }

    /// Resumes `waiter` when no download is left; there must be one now.
    func onIdle(_ waiter: UnsafeContinuation<Void, Never>) { idleWaiters.append(waiter) }

    private func wakeIdleWaiters() {
        guard operations.isEmpty, !idleWaiters.isEmpty else { return }
        for waiter in idleWaiters { waiter.resume() }
        idleWaiters = []
    }

    // MARK: State

    /// Downloads that wait for a slot, for their host or for its robots.txt.
    private var waiting: Int { max(0, operations.count - transfers.operations.count - retrying) }

    private var usedSlots: Int { unchecked.usedSlots(active: transfers.activeCount) }

    var activity: ImageDownloader.Activity {
        let (hasFreeSlots, names) = (usedSlots < limit, admission.names.waitingCount)
        let time = MonotonicClock.now
        return ImageDownloader.Activity(
            running: transfers.activeCount, stalled: transfers.stalledCount, retrying: retrying,
            waitingForHost: hasFreeSlots ? max(0, waiting - names) : 0,
            waitingForName: hasFreeSlots ? admission.names.shortage(now: time) : 0, operations: operations.count,
            names: admission.names.figures(now: time), work: work)
    }

    private var stages: TransferStages {
        var stages = transfers.stages
        stages.isFull = usedSlots >= limit && waiting > 0
        stages.isLimited = admission.bandwidth?.isHolding ?? false
        return stages
    }

    /// What the downloads of these URLs wait for, nil = of all; inactive URLs are omitted.
    func states(of urls: Set<ByteText>?) -> [ByteText: DownloadState] {
        let time = MonotonicClock.now
        var states: [ByteText: DownloadState] = [:]
        for operation in operations.values where urls?.contains(operation.key.url) ?? true {
            states[operation.key.url] = state(of: operation, at: time)
        }
        return states
    }

    private func state(of operation: DownloadOperation, at time: Double) -> DownloadState {
        if operation.handle != nil {
            let progress = operation.progress
            guard operation.isStalled else {
                return DownloadState(operation, .transferring, since: progress.hopStart, at: time)
            }
            var silent = DownloadState(operation, .stalled, since: progress.lastByte, at: time)
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

    // MARK: Settings

    /// Changes the number of concurrent transfers; those above a lower limit finish normally.
    /// * `isSuspended`: start nothing, whatever the limit.
    /// * `keepsIdle`: whether connections are kept that no transfer uses.
    /// * `excusesConnects`: whether failed connects are no tries of their URLs.
    /// * `mostStalled`: how many stalled ones do not count.
    func setLimit(_ count: Int, isSuspended: Bool, keepsIdle: Bool, excusesConnects: Bool, mostStalled: Int) {
        limit = isSuspended ? 0 : count
        self.excusesConnects = excusesConnects
        transfers.setLimits(
            expected: count, mostIdle: keepsIdle ? profile.configuration.idleConnections : 0, mostStalled: mostStalled)
    }

    func apply(_ new: ImageDownloader.Configuration) {
        profile = RequestProfile(new)
        admission.hosts.apply(new)
    }

    /// Starts over: every download ends with `cancelled`, every connection is closed.
    /// * `new`: nil keeps the configuration. Its number of transfers is set by ``setLimit(_:isSuspended:keepsIdle:excusesConnects:mostStalled:)``.
    func beginSession(_ new: ImageDownloader.Configuration?) {
        cancelAll()
        transfers.closeConnections()
        guard let new else { return }
        profile = RequestProfile(new)
        sites = SiteBook(new.addressPolicy)
        session.apply(new)
        admission.beginSession(new)
    }

    /// Closes kept connections if no transfer is running.
    func closeIdleConnections() {
        if transfers.operations.isEmpty { transfers.closeConnections() }
    }
}
