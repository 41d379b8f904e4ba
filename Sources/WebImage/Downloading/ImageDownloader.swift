internal import Threading

/// Downloads many URLs at once, over connections that are kept and shared, and tries again what may heal.
///
/// The actor runs on a thread of its own, which sleeps in curl's poll: all of curl's handles are its plain state. A URL is the
/// text as given, byte for byte; only what is sent is normalised. Two downloads of one URL with the same options and headers share
/// one transfer. Nothing of the environment is asked: no proxy variables, no netrc, no cookies unless wanted.
///
/// Writing to a connection that the peer has closed raises SIGPIPE inside TLS libraries; the signal is blocked on the downloader's
/// thread, so the process need not ignore it for the downloader's sake.
public actor ImageDownloader {
    private nonisolated let executor: ThreadExecutor
    /// What is not connected to whatever the configuration opens: the Redis of a worker.
    package nonisolated let closedPlaces = ClosedPlaces()
    private let loop: DownloadLoop
    private let admission: DownloadAdmission
    private let session: CurlSession
    private nonisolated let listeners = DownloadListeners()
    /// Where cookies go that were given no jar; it lasts as long as the session.
    private nonisolated let ownJar = CookieJar()
    /// What shows that the thread goes round.
    private nonisolated let pulse = LoopPulse()
    private var isSuspended = false
    /// Whether its session has ended, or ends with what is under way.
    private(set) var isInvalidated = false

    /// Transfers at once; ``setMaxConcurrentDownloads(_:)`` changes it.
    public private(set) var maxConcurrentDownloads: Int

    /// How it works; ``createNewSession(configuration:)`` changes it.
    public var configuration: Configuration { loop.configuration }

    /// The thread that runs the downloader.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Starts the thread. It ends when the downloader is released.
    /// - Throws: `invalidConfiguration`; `localFault` where curl has no memory or descriptors left.
    public init(configuration: Configuration = Configuration()) throws(WebImageError) {
        try configuration.validate()
        let multi = try CurlMulti()
        let reference = DownloaderReference()
        executor = ThreadExecutor(
            name: "downloader", wake: { multi.wake() },
            turn: { maySleep in
                // No strong reference while asleep: a released downloader must be able to end.
                let sleep = reference.downloader?.assumeIsolated { $0.loop.turn() } ?? 0
                if maySleep && sleep > 0 { multi.poll(milliseconds: sleep) }
            })
        let spooling = SpoolingTransfers(wake: { multi.wake() })
        session = CurlSession(
            configuration, sockets: multi.sockets, closed: closedPlaces, spooling: spooling,
            jarIsGone: { jar in reference.downloader?.perform { $0.session.forget(jar) } })
        admission = DownloadAdmission(
            configuration, readRobots: { site, profile in reference.downloader?.readRobots(of: site, profile) })
        loop = DownloadLoop(
            configuration, admission: admission, session: session,
            transfers: RunningTransfers(multi, session: session, spooling: spooling),
            listeners: listeners, closed: closedPlaces)
        maxConcurrentDownloads = configuration.maxConcurrentDownloads
        reference.set(self)
    }

    deinit { executor.stop() }

    /// Runs something on the thread, at its next round.
    private nonisolated func perform(_ body: @escaping @Sendable (isolated ImageDownloader) -> Void) {
        executor.perform { self.assumeIsolated { body($0) } }
    }

    // MARK: Downloading

    /// Downloads a URL and returns its complete, not yet verified body.
    ///
    /// Transient failures (timeouts, names, connections, short bodies, 408, 425, 429, 5xx) are tried again with growing, random
    /// pauses, and not before `Retry-After`; meanwhile the download holds no slot. Cancelling the task ends this call alone; the
    /// transfer ends when nobody waits for it any more.
    /// - Parameters:
    ///   - url: http or https, with or without credentials.
    ///   - options: what is done differently.
    ///   - headers: sent beside the configured ones: `If-None-Match`. Where a redirect leaves the site, only those go along whose
    ///     names are known to be harmless (`Accept`, `User-Agent`, `Referer`, `Range`, `If-…` and the like).
    ///   - attemptsUsed: tries already made, which count against `maxAttempts`: for a body that only its reader found cut.
    ///   - cookies: the jar of ``DownloadOptions/handleCookies``; nil: the downloader's own.
    ///   - progress: called on the downloader's thread, so it has to be quick: with (0, -1) at the start, (0, expected) for each
    ///     response, then with the bytes that have come; -1 where the server announces no length.
    /// - Returns: the response of the last hop.
    /// - Throws: a `WebImageError`, with `attempts` set; `cancelled`; `cacheNotModified` for a 304.
    public nonisolated func download(
        _ url: String, options: DownloadOptions = [], headers: [HTTPHeader] = [], attemptsUsed: Int = 0,
        cookies: CookieJar? = nil,
        progress: (@Sendable (_ receivedBytes: Int, _ expectedBytes: Int) -> Void)? = nil
    ) async throws(WebImageError) -> DownloadedImage {
        try await download(
            url, options: options, headers: headers, attemptsUsed: attemptsUsed, cookies: cookies, permit: nil,
            progress: progress)
    }

    /// The same under a permit that can be taken back.
    /// * `profile`: how its requests are made; nil: as ``configuration`` says.
    package nonisolated(nonsending) func download(
        _ url: String, options: DownloadOptions = [], headers: [HTTPHeader] = [], attemptsUsed: Int = 0,
        cookies: CookieJar? = nil, profile: RequestProfile? = nil, permit: DownloadPermit?,
        progress: (@Sendable (Int, Int) -> Void)? = nil
    ) async throws(WebImageError) -> DownloadedImage {
        if let bad = headers.first(where: { !$0.isValid }) {
            throw WebImageError(.invalidConfiguration, "the header \(bad.name) has a character that cannot be sent")
        }
        let cookies = options.contains(.handleCookies) ? cookies ?? ownJar : nil
        let key = DownloadOperation.Key(
            url: url, options: options.ofTransfer, headers: headers, jar: cookies?.id,
            profile: profile.map { ObjectIdentifier($0) })
        let request = try RequestURL(url)
        let parameters = DownloadOperation.Parameters(
            priority: options.priority, attemptsUsed: max(0, attemptsUsed), cookies: cookies)
        let call = DownloadCall(permit: permit, progress: progress)
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                call.begin(continuation)
                executor.perform {
                    self.assumeIsolated { downloader in
                        // A cancellation before this point found no waiter, but is seen here.
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
        // What has gone to a file is written by the pool, and may still be.
        do throws(WebImageError) { try await image.body.finish() } catch {
            var error = error
            error.attempts = image.attempts
            throw error
        }
        return image
    }

    /// For how long the thread has not come round to a question that was put to it; zero while it does. Puts the question, and does not
    /// wait: a caller looks again and again.
    package nonisolated var silence: Duration { pulse.look { answer in executor.perform(answer) } }

    /// Ends every download with `cancelled`.
    public func cancelAllDownloads() { loop.cancelAll() }

    /// Ends every download that has no transfer under way and whose callers have all lost their permit.
    package func endRevoked() { loop.endRevoked() }

    // MARK: What it does now

    /// Downloads running and waiting, pauses between tries included.
    public var currentDownloadCount: Int { activity.operations }

    /// Transfers that hold a slot now.
    public var activeDownloadCount: Int { activity.running }

    /// What the downloads are doing at one moment.
    package struct Activity: Sendable {
        /// Transfers that hold a slot, and those that are alive but silent.
        package var running = 0, parked = 0
        /// Pauses between tries.
        package var retrying = 0
        /// Downloads that could begin but for the limit of their host.
        package var waitingForHost = 0
        /// All downloads that have not ended.
        package var operations = 0
    }

    /// What the downloads are doing now.
    package var activity: Activity { loop.activity }

    /// What downloads of these URLs wait for now; of those that are not under way nothing. Looks at every download under way.
    package func states(of urls: Set<String>) -> [String: DownloadState] { loop.states(of: urls) }

    /// How many jars have cookies here.
    package var jarCount: Int { session.jarCount }

    /// What happens to all downloads from now on: SDWebImageDownloader's notifications, as a stream of its own for each caller.
    ///
    /// It ends with the downloader's session. Who reads too slowly loses the oldest of more than 65,536 events.
    public nonisolated func events() -> AsyncStream<DownloadEvent> { listeners.add() }

    // MARK: How it works

    /// Changes the number of transfers at once; those beyond a lower number end by themselves.
    public func setMaxConcurrentDownloads(_ count: Int) {
        maxConcurrentDownloads = min(max(1, count), 100_000)
        loop.setLimit(maxConcurrentDownloads, isSuspended: isSuspended)
    }

    /// Holds back what has not begun yet, or lets it begin.
    public func setSuspended(_ suspended: Bool) {
        isSuspended = suspended
        loop.setLimit(maxConcurrentDownloads, isSuspended: isSuspended)
    }

    /// Which waiting download is started next, from now on.
    public func setExecutionOrder(_ order: DownloadExecutionOrder) {
        var new = configuration
        new.executionOrder = order
        loop.apply(new)
    }

    /// Sets a header of every request that begins from now on; nil removes it.
    /// - Throws: `invalidConfiguration` where it cannot be sent.
    public func setValue(_ value: String?, forHTTPHeaderField name: String) throws(WebImageError) {
        guard HTTPHeader(name, value ?? "").isValid else {
            throw WebImageError(.invalidConfiguration, "the header \(name) has a character that cannot be sent")
        }
        var new = configuration
        new.setValue(value, forHTTPHeaderField: name)
        loop.apply(new)
    }

    /// The value of a header of every request.
    public func value(forHTTPHeaderField name: String) -> String? {
        configuration.value(forHTTPHeaderField: name)
    }

    /// How the requests of downloads are made that are not to be made as ``configuration`` says in all.
    /// - Throws: `invalidConfiguration`, naming the member and its range.
    package func profile(
        _ change: (inout Configuration) -> Void
    ) throws(WebImageError) -> RequestProfile { try loop.profile.varied(change) }

    // MARK: The session

    /// Ends every download with `cancelled`, closes every connection, forgets TLS sessions and cookies, and goes on with a new
    /// configuration (`createNewSessionWithConfiguration:`). What is known of hosts stays,
    /// so that one which asked to be left alone is left alone; how they are treated is the new configuration's.
    /// - Parameter new: nil: as it was, with the headers and numbers that were set since.
    /// - Throws: `invalidConfiguration`; then nothing has changed.
    public func createNewSession(configuration new: Configuration? = nil) throws(WebImageError) {
        try new?.validate()
        guard var new else { return loop.beginSession(nil) }
        // What a manager has added for its own sake stays.
        new.openTemporaryFile = new.openTemporaryFile ?? configuration.openTemporaryFile
        new.filePool = new.filePool ?? configuration.filePool
        new.fileCalls = new.fileCalls ?? configuration.fileCalls
        new.inspectHeader = new.inspectHeader ?? configuration.inspectHeader
        loop.beginSession(new)
        setMaxConcurrentDownloads(new.maxConcurrentDownloads)
    }

    /// Ends every download, and every later one at once, with `cancelled`, and closes every connection before it returns. The
    /// thread ends when the downloader is released: a call that is on its way to the actor still needs it.
    ///
    /// Call it before the process exits: OpenSSL frees what all connections need at exit, whether or not threads still use it.
    public func invalidateSessionAndCancel() {
        isInvalidated = true
        loop.beginSession(nil)
        listeners.finish()
    }

    /// Ends every later download at once with `cancelled`, waits for those under way, and closes every connection
    /// (`invalidateSessionAndCancel:` with NO).
    public func finishDownloadsAndInvalidateSession() async {
        isInvalidated = true
        while currentDownloadCount > 0 {
            await withUnsafeContinuation { loop.whenIdle($0) }
        }
        invalidateSessionAndCancel()
    }

    /// Closes the connections that are kept for later transfers, where none is under way: somebody lacks descriptors.
    package func closeIdleConnections() { loop.closeIdleConnections() }

    // MARK: Other processes that ask the same hosts

    /// From now on instants are reserved where all processes reserve theirs, a limit of a host's transfers is that of all of them together,
    /// and what is learnt of hosts and sites is told to them, by whoever takes ``nextHostCalls()``. Before the first download.
    /// * `rate`: bytes of bodies a second that all of them have together; nil: no such limit.
    package func shareHosts(limitRate rate: Int? = nil) { admission.share(limitRate: rate) }

    /// Whether news of hosts concern it.
    package var governsHosts: Bool { admission.hosts.governor != nil }

    /// Waits until something is to be asked or told; nil where the task is cancelled. One call at a time.
    package func nextHostCalls() async -> HostCalls? {
        guard !isInvalidated else { return nil }
        let waiter = Waiter<HostCalls?>()
        admission.call(waiter)
        return await waiter.wait(ifCancelled: nil)
    }

    /// The answers to wishes, in their order; nil: none now. Times are those of `MonotonicClock`.
    package func grant(_ answers: [(host: String, reservation: HostReservation?)]) { admission.grant(answers) }

    /// How many transfers to each host it may have now, in answer to its wishes; nil: no answer, as it was.
    package func grantShares(_ answers: [(host: String, granted: Int?)]) {
        let now = MonotonicClock.now
        for (host, granted) in answers { admission.hosts.grantShare(of: host, granted, now: now) }
    }

    /// Says of every host again how many transfers it has: others may have taken it for dead.
    package func sayHostSharesAgain() { admission.sayAgain() }

    /// What is known of all hosts by all processes.
    package func adoptHosts(_ all: [HostNews]) { admission.hosts.governor?.adopt(all, now: MonotonicClock.now) }

    /// What the other processes say of sites' files.
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

/// The way from the thread to its downloader, which it must not keep alive.
private final class DownloaderReference: Sendable {
    private struct Weak: Sendable { weak var downloader: ImageDownloader? }
    private let weak = Locked(Weak())
    var downloader: ImageDownloader? { weak.withLock { $0.downloader } }
    func set(_ downloader: ImageDownloader) { weak.withLock { $0.downloader = downloader } }
}
