internal import Threading

/// Downloads many URLs concurrently over shared persistent connections, with retries.
///
/// The actor runs on its own thread, which sleeps in curl's poll; all curl handles are its plain state. A URL is identified by its text,
/// byte for byte; only what is sent is normalised. Downloads of one URL with the same options and headers share a transfer. The environment
/// is ignored: no proxy variables, no netrc, no cookies unless requested.
///
/// Writing to a connection closed by the peer raises SIGPIPE inside TLS libraries; the signal is blocked on the downloader's thread, so the
/// process need not ignore it.
public actor ImageDownloader {
    private nonisolated let executor: ThreadExecutor
    /// Never connected to, whatever the configuration allows: the Redis of a worker.
    package nonisolated let blockedEndpoints = BlockedEndpoints()
    private let loop: DownloadLoop
    private let admission: DownloadAdmission
    private let session: CurlSession
    private let transfers: RunningTransfers
    private let tally = TransferTally()
    private nonisolated let unchecked: UncheckedBodies
    private nonisolated let listeners = DownloadListeners()
    /// Default jar for cookies, for the lifetime of the session.
    private nonisolated let ownJar = CookieJar()
    private nonisolated let pulse = LoopMonitor()
    private nonisolated let floods: FloodGuard
    private var isSuspended = false
    private var keepsIdleConnections = true, excusesConnects = false, freesStalled = true
    /// Whether its session has ended, or ends after the running downloads.
    private(set) var isInvalidated = false

    /// Maximum concurrent transfers; change it with ``setMaxConcurrentDownloads(_:)``. Those of an ``ImageManager`` are fewer while many of
    /// its bodies wait for their check.
    public private(set) var maxConcurrentDownloads: Int

    /// The configuration; change it with ``createNewSession(configuration:)``.
    public var configuration: Configuration { loop.profile.configuration }

    var maxTries: Int { configuration.maxTries }

    /// The downloader's thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Starts the thread, which ends when the downloader is released.
    /// - Throws: `invalidConfiguration`; `localFault` if curl is out of memory or descriptors.
    public init(configuration: Configuration = Configuration()) throws(WebImageError) {
        try configuration.validate()
        let multi = try CurlMulti()
        let reference = WeakReference<ImageDownloader>()
        executor = ThreadExecutor(
            name: "downloader", wake: { multi.wake() },
            turn: { maySleep in
                // No strong reference while asleep: a released downloader must be able to end.
                let (sleep, hasResults) =
                    reference.object?.assumeIsolated { $0.loop.turn() } ?? (0, false)
                guard maySleep && sleep > 0 else { return }
                if hasResults {
                    // As long as transfers go on, results are collected.
                    let end = multi.poll(milliseconds: 0)
                    guard end != .ready else { return }
                    reference.object?.assumeIsolated { $0.loop.handOver() }
                    // The next poll would not see the wake-up for what has been enqueued.
                    guard end != .wake else { return }
                }
                multi.poll(milliseconds: sleep)
            })
        floods = FloodGuard(multi.calls, of: multi.sockets) { [executor] in executor.processorTime }
        let spooling = SpoolingTransfers(wake: { multi.wake() })
        session = CurlSession(
            configuration, sockets: multi.sockets, closed: blockedEndpoints, spooling: spooling,
            didReleaseJar: { jar in reference.object?.perform { $0.session.forget(jar) } })
        unchecked = UncheckedBodies(wake: { multi.wake() })
        let (proven, silent) = (ProvenSites(), SilentHosts())
        admission = DownloadAdmission(
            configuration, proven: proven, silent: silent, sockets: multi.names, closed: blockedEndpoints,
            readRobots: { site, profile in reference.object?.readRobots(of: site, profile) })
        transfers = RunningTransfers(multi, session: session, spooling: spooling)
        loop = DownloadLoop(
            configuration, admission: admission, session: session, transfers: transfers, unchecked: unchecked,
            tally: tally, listeners: listeners, proven: proven, silent: silent)
        maxConcurrentDownloads = configuration.maxConcurrentDownloads
        reference.set(self)
    }

    deinit {
        floods.stop()
        executor.stop()
    }

    private nonisolated func perform(_ body: @escaping @Sendable (isolated ImageDownloader) -> Void) {
        executor.perform { self.assumeIsolated { body($0) } }
    }

    // MARK: Downloading

    /// Downloads a URL and returns its complete, not yet verified body.
    ///
    /// Transient failures (timeouts, DNS, connections, short bodies, 408, 425, 429, 5xx) are retried with exponential random back-off, and
    /// not before `Retry-After`; meanwhile the download holds no slot. Cancelling the task ends only this call, and the transfer with its
    /// last one.
    /// - Parameters:
    ///   - url: http or https, with or without credentials.
    ///   - options: options of this download.
    ///   - headers: sent in addition to the configured ones, such as `If-None-Match`. After a redirect to another site only harmless ones
    ///     are sent (`Accept`, `User-Agent`, `Referer`, `Range`, `If-…` and the like).
    ///   - triesUsed: earlier tries that count against `maxTries`, for a body whose reader found it truncated.
    ///   - cookies: the jar for ``DownloadOptions/handleCookies``; nil: the downloader's own.
    ///   - progress: called on the downloader's thread, so it must be quick: with (0, -1) at the start, (0, expected) for each response
    ///     that is neither an error nor a 304, then with the bytes received; expected is 0 if the server announces no length, as in SDWebImage.
    /// - Returns: the response of the last hop.
    /// - Throws: a `WebImageError` with `tries` set; `cancelled`; `cacheNotModified` for a 304.
    public nonisolated func download(
        _ url: String, options: DownloadOptions = [], headers: [HTTPHeader] = [], triesUsed: Int = 0,
        cookies: CookieJar? = nil,
        progress: (@Sendable (_ receivedBytes: Int, _ expectedBytes: Int) -> Void)? = nil
    ) async throws(WebImageError) -> DownloadedImage {
        try await download(
            url, options: options, headers: headers, triesUsed: triesUsed, cookies: cookies, permit: nil,
            progress: progress)
    }

    /// With a revocable permit.
    /// * `profile`: profile of its requests; nil: ``configuration``.
    /// * `rules`: which images are transferred to their end; not without an inspection of the first bytes.
    /// * `isChecked`: the caller calls ``didCheck(_:)`` with the result. When many are not checked yet, no further transfer starts.
    package nonisolated(nonsending) func download(
        _ url: String, options: DownloadOptions = [], headers: [HTTPHeader] = [], triesUsed: Int = 0,
        cookies: CookieJar? = nil, profile: RequestProfile? = nil, rules: HeaderRules? = nil, permit: DownloadPermit?,
        isChecked: Bool = false, progress: (@Sendable (Int, Int) -> Void)? = nil
    ) async throws(WebImageError) -> DownloadedImage {
        if let objection = headers.lazy.compactMap(\.objection).first {
            throw WebImageError(.invalidConfiguration, objection)
        }
        let cookies = options.contains(.handleCookies) ? cookies ?? ownJar : nil
        let key = DownloadOperation.Key(
            url: url, options: options.transferOptions, headers: headers, jar: cookies?.id,
            profile: profile.map { ObjectIdentifier($0) }, rules: rules)
        let request = try RequestURL(url)
        let parameters = DownloadOperation.Parameters(
            priority: options.priority, triesUsed: max(0, triesUsed), cookies: cookies)
        let call = DownloadCaller(permit: permit, progress: progress, unchecked: isChecked ? unchecked : nil)
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                call.begin(continuation)
                executor.perform {
                    self.assumeIsolated { downloader in
                        // A cancellation before this point found no caller to remove, but is seen here.
                        guard !call.isCancelled, permit?.isRevoked != true, !downloader.isInvalidated else {
                            return call.end(.failure(.downloadCancelled))
                        }
                        progress?(0, -1)
                        do throws(WebImageError) {
                            try downloader.loop.download(
                                key, profile: profile, request: request, parameters: parameters, for: call)
                        } catch {
                            call.end(.failure(error))
                        }
                    }
                }
            }
        } onCancel: {
            call.cancel()
            executor.perform { self.assumeIsolated { $0.loop.cancel(call, of: key) } }
        }
        let image = try call.takeResult().get()
        // Bytes spooled to a file may still be in the pool's queue.
        do throws(WebImageError) { try await image.body.finish() } catch {
            if isChecked { didCheck(image) }
            var error = error
            error.tries = image.tries
            throw error
        }
        return image
    }

    /// Its body was checked and stored, or refused.
    package nonisolated func didCheck(_ image: DownloadedImage) {
        if UncheckedBodies.counts(image) { unchecked.remove() }
    }

    /// How long the thread has left a ping unanswered; zero while it responds. Sends a ping and does not wait: poll it.
    package nonisolated var silence: Duration { pulse.check { answer in executor.perform(answer) } }

    /// Ends every download with `cancelled`.
    public func cancelAllDownloads() { loop.cancelAll() }

    /// Ends every download without a running transfer whose callers have all lost their permit.
    package func endRevoked() { loop.endRevoked() }

    // MARK: State

    /// Number of running and waiting downloads, including those waiting for a retry.
    public var currentDownloadCount: Int { activity.operations }

    /// Number of transfers that hold a slot.
    public var activeDownloadCount: Int { activity.running }

    /// A snapshot of the downloads.
    package struct Activity: Sendable {
        /// Transfers that hold a slot, and stalled ones without.
        package var running = 0, stalled = 0
        package var retrying = 0
        /// Downloads that wait for their host, and for its name, while there are free slots. Of the names only as many count as the resolver
        /// is asked for at once, unless it is slow.
        package var waitingForHost = 0, waitingForName = 0
        package var operations = 0
        package var names = NameFigures()
        package var work = TransferWork()
    }

    package var activity: Activity { loop.activity }

    /// What the transfers did since the last call, for ``ConcurrencyController``; nothing at the first. Visits each running one.
    package func sample() -> TransferSample {
        let connections = transfers.takeConnections()
        var sample = tally.sample(
            running: unchecked.usedSlots(active: transfers.activeCount), of: transfers.operations,
            sockets: connections.count, now: MonotonicClock.now)
        sample.delays = connections.delays
        return sample
    }

    /// Which hosts downloads wait for although there are free slots, most downloads first. Iterates over all active downloads.
    package var hostWaits: [HostWait] {
        var counts: [ByteText: [HostWait.Reason: Int]] = [:]
        for state in loop.states(of: nil).values {
            if let reason = state.hostWait { counts[state.host, default: [:]][reason, default: 0] += 1 }
        }
        return counts.flatMap { host, reasons in
            reasons.map { HostWait(host: host.text, reason: $0, count: $1) }
        }.sorted { ($0.count, $1.host) > ($1.count, $0.host) }
    }

    /// Processor time of the downloader's thread so far.
    package nonisolated var processorTime: Duration { executor.processorTime }

    /// What the downloads of these URLs wait for; inactive URLs are omitted. Iterates over all active downloads.
    package func states(of urls: some Sequence<String>) -> [ByteText: DownloadState] {
        loop.states(of: Set(texts: urls))
    }

    package var jarCount: Int { session.jarCount }

    /// Bytes of the cookies in all jars of which no download runs.
    package var cookieBytes: Int { session.cookieBytes }

    /// The events of all downloads from now on (SDWebImageDownloader's notifications); each caller gets its own stream.
    ///
    /// Ends with the downloader's session. Buffers 65,536 events; a slow reader loses the oldest.
    public nonisolated func events() -> AsyncStream<DownloadEvent> { listeners.add() }

    // MARK: Settings

    /// Changes the number of concurrent transfers; those above a lower limit finish normally.
    public func setMaxConcurrentDownloads(_ count: Int) {
        maxConcurrentDownloads = min(max(1, count), 100_000)
        applyLimit()
    }

    /// Suspends or resumes the start of waiting downloads.
    public func setSuspended(_ suspended: Bool) {
        isSuspended = suspended
        applyLimit()
    }

    /// Sets whether connections are kept that no transfer uses, for later requests to their hosts, yes by default; and whether connects that
    /// fail are no tries of their URLs, up to 16 times each, no by default: while connections are closed because a router refuses more.
    package func setConnections(keepsIdle: Bool, excusesConnects: Bool) {
        guard keepsIdle != keepsIdleConnections || excusesConnects != self.excusesConnects else { return }
        (keepsIdleConnections, self.excusesConnects) = (keepsIdle, excusesConnects)
        applyLimit()
    }

    /// Sets whether ``Configuration/maxStalledDownloads`` applies, yes by default; if not, the number of transfers is a maximum.
    package func setFreesStalled(_ frees: Bool) {
        guard frees != freesStalled else { return }
        freesStalled = frees
        applyLimit()
    }

    private func applyLimit() {
        loop.setLimit(
            maxConcurrentDownloads, isSuspended: isSuspended, keepsIdle: keepsIdleConnections,
            excusesConnects: excusesConnects, mostStalled: freesStalled ? configuration.maxStalledDownloads : 0)
    }

    /// Sets the order in which waiting downloads start.
    public func setExecutionOrder(_ order: DownloadExecutionOrder) {
        var new = configuration
        new.executionOrder = order
        loop.apply(new)
    }

    /// Sets a header of all later requests; nil removes it.
    /// - Throws: `invalidConfiguration` if it cannot be sent.
    public func setValue(_ value: String?, forHTTPHeaderField name: String) throws(WebImageError) {
        if let objection = HTTPHeader(name, value ?? "").objection {
            throw WebImageError(.invalidConfiguration, objection)
        }
        var new = configuration
        new.setValue(value, forHTTPHeaderField: name)
        loop.apply(new)
    }

    /// The value of a header of every request.
    public func value(forHTTPHeaderField name: String) -> String? {
        configuration.value(forHTTPHeaderField: name)
    }

    /// Counts its URL filters as a worker's: a URL that one refuses is left to other workers, and does not end as `filtered`.
    package func treatFiltersAsWorkers() {
        var new = configuration
        (new.workerFilters, new.urlFilters) = (new.workerFilters + new.urlFilters, [])
        loop.apply(new)
    }

    /// Creates a variation of ``configuration`` for some downloads.
    /// - Throws: `invalidConfiguration` with the member and its range.
    package func profile(
        _ change: (inout Configuration) -> Void
    ) throws(WebImageError) -> RequestProfile { try loop.profile.varied(change) }

    // MARK: Session

    /// Ends every download with `cancelled`, closes all connections, drops TLS sessions and cookies, and continues with a new configuration
    /// (`createNewSessionWithConfiguration:`). The state of hosts is kept, including back-off, but not their policy.
    /// - Parameter new: nil: unchanged, including headers and limits set since.
    /// - Throws: `invalidConfiguration`; then nothing has changed.
    public func createNewSession(configuration new: Configuration? = nil) throws(WebImageError) {
        try new?.validate()
        guard var new else { return loop.beginSession(nil) }
        // Keep what a manager has added for its own purposes.
        new.openTemporaryFile = new.openTemporaryFile ?? configuration.openTemporaryFile
        new.filePool = new.filePool ?? configuration.filePool
        new.fileCalls = new.fileCalls ?? configuration.fileCalls
        new.inspectHeader = new.inspectHeader ?? configuration.inspectHeader
        loop.beginSession(new)
        setMaxConcurrentDownloads(new.maxConcurrentDownloads)
    }

    /// Ends every download with `cancelled`, rejects later ones, and closes every connection before it returns. The thread ends when the
    /// downloader is released, because calls already queued still need it.
    ///
    /// Call it before the process exits: OpenSSL frees its global state at exit, even if threads still use it.
    public func invalidateSessionAndCancel() {
        isInvalidated = true
        loop.beginSession(nil)
        listeners.finish()
    }

    /// Rejects later downloads with `cancelled`, waits for running ones, closes every connection (`invalidateSessionAndCancel:` with NO).
    public func finishDownloadsAndInvalidateSession() async {
        isInvalidated = true
        while currentDownloadCount > 0 {
            await withUnsafeContinuation { loop.onIdle($0) }
        }
        invalidateSessionAndCancel()
    }

    /// Closes kept connections if no transfer is running, to free descriptors.
    package func closeIdleConnections() { loop.closeIdleConnections() }

    // MARK: Coordination with other processes

    /// Starts coordinating with other processes through the caller of ``nextHostMessages()``: instants are reserved centrally, the transfer
    /// limit of a host applies to all processes together, and the state of hosts and sites is shared. Call it before the first download.
    /// * `rate`: body bytes per second for all of them together; nil: no limit.
    package func shareHosts(limitRate rate: Int? = nil) { admission.share(limitRate: rate) }

    package var governsHosts: Bool { admission.hosts.governor != nil }

    /// Waits for requests or reports to other processes; nil if the task is cancelled. One call at a time.
    package func nextHostMessages() async -> HostMessages? {
        guard !isInvalidated else { return nil }
        let waiter = Waiter<HostMessages?>()
        admission.call(waiter)
        return await waiter.wait(ifCancelled: nil)
    }

    /// Handles the replies to requests, in their order; nil: not granted now. Times are those of `MonotonicClock`.
    package func grant(_ answers: [(request: HostSlotRequest, reservation: HostReservation?)]) {
        admission.grant(answers)
    }

    /// Sets the granted number of transfers to each host; nil: no reply, unchanged.
    package func grantShares(_ answers: [(request: HostShareRequest, granted: Int?)]) {
        let now = MonotonicClock.now
        for (request, granted) in answers { admission.hosts.grant(request, granted, now: now) }
    }

    /// Reports the transfers of every host again: the other processes may have dropped this one as dead.
    package func reportHostSharesAgain() { admission.reportAgain() }

    package func adoptHosts(_ all: [HostReport]) { admission.hosts.governor?.adopt(all, now: MonotonicClock.now) }

    package func grantRobots(_ answers: [(site: RobotsSite, answer: RobotsAnswer)]) {
        loop.end(admission.grantRobots(answers))
    }

    private nonisolated func readRobots(of site: RobotsSite, _ profile: RequestProfile) {
        Task {
            let result: Result<DownloadedImage, WebImageError>
            do throws(WebImageError) {
                result = .success(
                    try await download(
                        "\(site.site)/robots.txt", options: [.unasked, .uninspected], profile: profile, permit: nil))
            } catch {
                result = .failure(error)
            }
            await didReadRobots(of: site, result)
        }
    }

    private func didReadRobots(of site: RobotsSite, _ result: Result<DownloadedImage, WebImageError>) {
        loop.end(admission.didReadRobots(of: site, result))
    }
}
