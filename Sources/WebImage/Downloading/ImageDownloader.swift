internal import DequeModule
internal import Glibc
internal import HeapModule
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
    let multi: CurlMulti
    /// What is not connected to whatever the configuration opens: the Redis of a worker.
    package nonisolated let closedPlaces = ClosedPlaces()
    /// How it works; ``createNewSession(configuration:)`` changes it.
    public internal(set) var configuration: Configuration
    var retryPolicy: RetryPolicy
    var limits: DownloadOperation.Limits
    var named: [NamedPlace]
    /// When hosts may be asked; nil: whenever there is a slot.
    var governor: HostGovernor?
    /// Whether other processes ask the same hosts, and agree with this one on it.
    var isShared = false
    /// What it may have of the transfers to one host that they have together; nil: it is alone.
    var shares: HostShares?
    /// Bytes a second that all these processes have together.
    var sharedRate: Int?
    /// What sites ask of programs; nil: nobody asks them.
    var robots: RobotsBook?
    /// Sites that have completed a body.
    var delivering = DeliveringSites()
    /// Sites whose certificate was refused.
    var untrusted = UntrustedSites()
    /// How fast bodies may come; nil: as fast as they do.
    var bandwidth: BandwidthLimit?
    /// Transfers that wait for the disk.
    let spooling: SpoolingTransfers
    /// What shows that the thread goes round.
    private nonisolated let loopPulse = LoopPulse()
    /// Who waits for the governor's questions to others.
    var hostCaller: HostCaller?

    /// Transfers at once; ``setMaxConcurrentDownloads(_:)`` changes it.
    public internal(set) var maxConcurrentDownloads: Int
    var isSuspended = false
    var isInvalidated = false
    var isThreadPrepared = false
    var operations: [DownloadOperation.Key: DownloadOperation] = [:]
    var queue: DownloadQueue<DownloadOperation>
    var retries = Heap<Retry>()
    var running: [DownloadOperation] = []
    var parkedCount = 0
    var nextRetry = 0
    var now = 0.0
    var nextCheck = Double.infinity
    var checkInterval: Double
    nonisolated let listeners = DownloadListeners()
    /// Who waits until no download is left.
    var idleWaiters: [UnsafeContinuation<Void, Never>] = []

    /// By the number of the jar; nil: without cookies.
    var pools: [UInt64?: CurlHandlePool] = [:]
    /// Where cookies go that were given no jar; it lasts as long as the session.
    nonisolated let ownJar = CookieJar()
    var connectTo: CurlList?
    var resolve: CurlList?
    var headers: CurlList
    var headersOffOrigin: CurlList

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
                let sleep = reference.downloader?.assumeIsolated { $0.turn() } ?? 0
                if maySleep && sleep > 0 { multi.poll(milliseconds: sleep) }
            })
        self.multi = multi
        spooling = SpoolingTransfers(wake: { multi.wake() })
        self.configuration = configuration
        retryPolicy = configuration.retryPolicy
        limits = DownloadOperation.Limits(configuration)
        named = (configuration.connectTo + configuration.resolve).compactMap(NamedPlace.init)
        governor = configuration.governor
        robots = configuration.robots
        bandwidth = configuration.bandwidth(shared: nil)
        maxConcurrentDownloads = configuration.maxConcurrentDownloads
        queue = DownloadQueue(order: configuration.executionOrder)
        checkInterval = configuration.checkInterval
        connectTo = configuration.connectTo.isEmpty ? nil : CurlList(configuration.connectTo)
        resolve = configuration.resolve.isEmpty ? nil : CurlList(configuration.resolve)
        headers = CurlList(headers: configuration.headers)
        headersOffOrigin = CurlList(headers: configuration.headers.filter(\.isHarmless))
        multi.setConnectionLimit(configuration.connectionLimit(configuration.maxConcurrentDownloads))
        reference.set(self)
    }

    deinit { executor.stop() }

    /// Runs something on the thread, at its next round.
    nonisolated func perform(_ body: @escaping @Sendable (isolated ImageDownloader) -> Void) {
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
    /// * `maxConnectionsPerHost`: as ``Configuration/maxConnectionsPerHost``, for every host; 0: no limit, nil: as that says.
    package nonisolated(nonsending) func download(
        _ url: String, options: DownloadOptions = [], headers: [HTTPHeader] = [], attemptsUsed: Int = 0,
        cookies: CookieJar? = nil, maxConnectionsPerHost: Int? = nil, permit: DownloadPermit?,
        progress: (@Sendable (Int, Int) -> Void)? = nil
    ) async throws(WebImageError) -> DownloadedImage {
        if let bad = headers.first(where: { !$0.isValid }) {
            throw WebImageError(.invalidConfiguration, "the header \(bad.name) has a character that cannot be sent")
        }
        let cookies = options.contains(.handleCookies) ? cookies ?? ownJar : nil
        let key = DownloadOperation.Key(url: url, options: options.ofTransfer, headers: headers, jar: cookies?.id)
        let request = try RequestURL(url)
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
                        if let operation = downloader.operations[key] {
                            operation.waiters.append(call)
                            return downloader.observe(operation)
                        }
                        do throws(WebImageError) {
                            try downloader.begin(
                                key, request: request, priority: options.priority,
                                maxConnectionsPerHost: maxConnectionsPerHost, attemptsUsed: max(0, attemptsUsed),
                                cookies: cookies, for: call)
                        } catch {
                            call.end(.failure(error))
                        }
                    }
                }
            }
        } onCancel: {
            call.cancel()
            executor.perform { self.assumeIsolated { $0.cancel(call, of: key) } }
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
    package nonisolated var silence: Duration { loopPulse.look { answer in executor.perform(answer) } }

    private func begin(
        _ key: DownloadOperation.Key, request: RequestURL, priority: Int, maxConnectionsPerHost: Int?,
        attemptsUsed: Int,
        cookies: CookieJar?, for call: DownloadCall
    ) throws(WebImageError) {
        let (request, headers) = try modifiedRequest(key, request)
        let operation = DownloadOperation(
            key: key, request: request, priority: priority, maxConnectionsPerHost: maxConnectionsPerHost,
            attemptsUsed: attemptsUsed, limits: limits)
        operation.requestHeaders = headers
        operation.cookies = cookies
        operations[key] = operation
        // Before it is let in: where the site forbids it, it ends at once.
        operation.waiters.append(call)
        observe(operation)
        operation.beginAttempt()
        enter(operation)
    }

    /// Ends every download with `cancelled`.
    public func cancelAllDownloads() {
        let all = Array(operations.values)
        for operation in all {
            stopTransfer(of: operation)
            complete(operation, .failure(.downloadCancelled))
        }
        queue.removeAll()
        retries = Heap()
    }

    /// Downloads running and waiting, pauses between tries included.
    public var currentDownloadCount: Int { operations.count }

    /// Transfers that hold a slot now.
    public var activeDownloadCount: Int { running.count - parkedCount }

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
    package var activity: Activity {
        let active = running.count - parkedCount
        let waiting = max(0, operations.count - running.count - retries.count)
        return Activity(
            running: active, parked: parkedCount, retrying: retries.count,
            waitingForHost: active < maxConcurrentDownloads && !isSuspended ? waiting : 0,
            operations: operations.count)
    }

    /// Changes the number of transfers at once; those beyond a lower number end by themselves.
    public func setMaxConcurrentDownloads(_ count: Int) {
        maxConcurrentDownloads = min(max(1, count), 100_000)
        multi.setConnectionLimit(configuration.connectionLimit(maxConcurrentDownloads))
    }

    /// Holds back what has not begun yet, or lets it begin.
    public func setSuspended(_ suspended: Bool) { isSuspended = suspended }

    private func cancel(_ call: DownloadCall, of key: DownloadOperation.Key) {
        guard let operation = operations[key],
            let index = operation.waiters.firstIndex(where: { $0 === call })
        else { return }
        operation.waiters.remove(at: index).end(.failure(.downloadCancelled))
        guard operation.waiters.isEmpty else { return }
        // What is in the backlog or waits for its next try is skipped when its turn comes.
        stopTransfer(of: operation)
        endProbe(of: operation)
        operations[key] = nil
        tellEnd(of: operation, .failure(.downloadCancelled))
        wakeIdleWaiters()
    }

    /// Wakes who waits until no download is left.
    func wakeIdleWaiters() {
        guard operations.isEmpty, !idleWaiters.isEmpty else { return }
        for waiter in idleWaiters { waiter.resume() }
        idleWaiters = []
    }
}

/// One caller of `download`, known by its identity. Its result comes through the lock, which ThreadSanitizer understands: of a
/// continuation that is resumed before its task has suspended it does not see that the one comes before the other.
final class DownloadCall: Sendable {
    private struct State {
        var isCancelled = false
        var continuation: UnsafeContinuation<Void, Never>?
        var result: Result<DownloadedImage, WebImageError> = .failure(.downloadCancelled)
    }

    private let state = Locked(State())
    /// Its leave to begin anything; nil where nobody takes that back.
    let permit: DownloadPermit?
    /// Hears of its bytes.
    let progress: (@Sendable (Int, Int) -> Void)?

    init(permit: DownloadPermit? = nil, progress: (@Sendable (Int, Int) -> Void)? = nil) {
        self.permit = permit
        self.progress = progress
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }
    /// How it ended; for its caller, once.
    func takeResult() -> Result<DownloadedImage, WebImageError> {
        state.withLock { state in
            var result: Result<DownloadedImage, WebImageError> = .failure(.downloadCancelled)
            swap(&result, &state.result)
            return result
        }
    }

    func cancel() { state.withLock { $0.isCancelled = true } }
    func begin(_ continuation: UnsafeContinuation<Void, Never>) { state.withLock { $0.continuation = continuation } }

    /// Wakes the caller; once.
    func end(_ result: Result<DownloadedImage, WebImageError>) {
        let continuation = state.withLock { state in
            state.result = result
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume()
    }
}

/// The way from the thread to its downloader, which it must not keep alive.
private final class DownloaderReference: Sendable {
    private struct Weak: Sendable { weak var downloader: ImageDownloader? }
    private let weak = Locked(Weak())
    var downloader: ImageDownloader? { weak.withLock { $0.downloader } }
    func set(_ downloader: ImageDownloader) { weak.withLock { $0.downloader = downloader } }
}
