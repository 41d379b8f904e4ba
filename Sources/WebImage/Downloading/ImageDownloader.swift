internal import CCurl
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
    private let multi: CurlMulti
    let configuration: Configuration
    private let retryPolicy: RetryPolicy
    private let limits: DownloadOperation.Limits
    private let named: [NamedPlace]

    private var maxConcurrentDownloads: Int
    private var isSuspended = false
    private var isInvalidated = false
    private var isThreadPrepared = false
    private var operations: [DownloadOperation.Key: DownloadOperation] = [:]
    private var queue: DownloadQueue<DownloadOperation>
    private var retries = Heap<Retry>()
    private var running: [DownloadOperation] = []
    private var parkedCount = 0
    private var nextWaiter = 0
    private var now = 0.0
    private var nextCheck = Double.infinity
    private let checkInterval: Double

    private let plainShare: CurlShare
    private var cookieShare: CurlShare?
    private var idleHandles: [CurlHandle] = []
    private var idleCookieHandles: [CurlHandle] = []
    private let connectTo: CurlList?
    private let resolve: CurlList?
    private let headers: CurlList
    private let headersWithoutCredentials: CurlList

    /// The thread that runs the downloader.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Starts the thread. It ends when the downloader is released.
    /// - Throws: `invalidConfiguration`; `localFault` where curl has no memory or descriptors left.
    public init(configuration: Configuration = Configuration()) throws(WebImageError) {
        try configuration.validate()
        let multi = try CurlMulti()
        let reference = DownloaderReference()
        plainShare = try CurlShare(cookies: false)
        executor = ThreadExecutor(
            name: "downloader", wake: { multi.wake() },
            turn: { maySleep in
                // No strong reference while asleep: a released downloader must be able to end.
                let sleep = reference.downloader?.assumeIsolated { $0.turn() } ?? 0
                if maySleep && sleep > 0 { multi.poll(milliseconds: sleep) }
            })
        self.multi = multi
        self.configuration = configuration
        retryPolicy = configuration.retryPolicy
        limits = DownloadOperation.Limits(configuration)
        named = (configuration.connectTo + configuration.resolve).compactMap(NamedPlace.init)
        maxConcurrentDownloads = configuration.maxConcurrentDownloads
        queue = DownloadQueue(order: configuration.executionOrder)
        checkInterval = configuration.checkInterval
        connectTo = configuration.connectTo.isEmpty ? nil : CurlList(configuration.connectTo)
        resolve = configuration.resolve.isEmpty ? nil : CurlList(configuration.resolve)
        headers = CurlList(headers: configuration.headers)
        headersWithoutCredentials = CurlList(headers: configuration.headers.filter { !$0.isCredential })
        multi.setConnectionLimit(configuration.connectionLimit(configuration.maxConcurrentDownloads))
        reference.set(self)
    }

    deinit { executor.stop() }

    // MARK: Downloading

    /// Downloads a URL and returns its complete, not yet verified body.
    ///
    /// Transient failures (timeouts, names, connections, short bodies, 408, 425, 429, 5xx) are tried again with growing, random
    /// pauses, and not before `Retry-After`; meanwhile the download holds no slot. Cancelling the task ends this call alone; the
    /// transfer ends when nobody waits for it any more.
    ///
    /// * `url`: http or https, with or without credentials.
    /// * `options`: what is done differently.
    /// * `headers`: sent beside the configured ones: `If-None-Match`. Credentials stay behind where a redirect leaves the site.
    /// * `attemptsUsed`: tries already made, which count against `maxAttempts`: for a body that only its reader found cut.
    /// Throws a `WebImageError`, with `attempts` set; `cancelled`; `cacheNotModified` for a 304.
    public func download(
        _ url: String, options: DownloadOptions = [], headers: [HTTPHeader] = [], attemptsUsed: Int = 0
    ) async throws(WebImageError) -> DownloadedImage {
        if let bad = headers.first(where: { !$0.isValid }) {
            throw WebImageError(.invalidConfiguration, "the header \(bad.name) has a character that cannot be sent")
        }
        let key = DownloadOperation.Key(url: url, options: options.ofTransfer, headers: headers)
        let request: RequestURL
        if let present = operations[key] { request = present.start } else { request = try RequestURL(url) }
        nextWaiter += 1
        let waiter = nextWaiter
        let result = await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: DownloadOperation.Continuation) in
                // A cancellation before this point found no waiter, but is seen here.
                guard !Task.isCancelled, !isInvalidated else {
                    return continuation.resume(returning: .failure(.downloadCancelled))
                }
                let operation =
                    operations[key]
                    ?? begin(key, request: request, priority: options.priority, attemptsUsed: max(0, attemptsUsed))
                operation.waiters.append((waiter, continuation))
            }
        } onCancel: {
            Task { await self.cancel(waiter: waiter, of: key) }
        }
        return try result.get()
    }

    private func begin(
        _ key: DownloadOperation.Key, request: RequestURL, priority: Int, attemptsUsed: Int
    ) -> DownloadOperation {
        let operation = DownloadOperation(
            key: key, request: request, priority: priority, attemptsUsed: attemptsUsed, limits: limits)
        operations[key] = operation
        operation.beginAttempt()
        enqueue(operation)
        return operation
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
    }

    /// What the downloads are doing now.
    package var activity: Activity {
        let active = running.count - parkedCount
        let waiting = max(0, operations.count - running.count - retries.count)
        return Activity(
            running: active, parked: parkedCount, retrying: retries.count,
            waitingForHost: active < maxConcurrentDownloads && !isSuspended ? waiting : 0)
    }

    /// Changes the number of transfers at once; those beyond a lower number end by themselves.
    public func setMaxConcurrentDownloads(_ count: Int) {
        maxConcurrentDownloads = min(max(1, count), 100_000)
        multi.setConnectionLimit(configuration.connectionLimit(maxConcurrentDownloads))
    }

    /// Holds back what has not begun yet, or lets it begin.
    public func setSuspended(_ suspended: Bool) { isSuspended = suspended }

    /// Ends every download, and every later one at once, with `cancelled`. The thread and the connections end when the downloader
    /// is released: a call that is on its way to the actor still needs the thread.
    public func invalidateSessionAndCancel() {
        isInvalidated = true
        cancelAllDownloads()
        idleHandles = []
        idleCookieHandles = []
    }

    private func cancel(waiter: Int, of key: DownloadOperation.Key) {
        guard let operation = operations[key],
            let index = operation.waiters.firstIndex(where: { $0.id == waiter })
        else { return }
        operation.waiters.remove(at: index).continuation.resume(returning: .failure(.downloadCancelled))
        guard operation.waiters.isEmpty else { return }
        // What is in the backlog or waits for its next try is skipped when its turn comes.
        stopTransfer(of: operation)
        operations[key] = nil
    }

    // MARK: The loop

    /// One round of the thread; returns how long it may sleep, in milliseconds.
    private func turn() -> Int32 {
        if !isThreadPrepared { prepareThread() }
        now = monotonicSeconds()
        if now >= nextCheck { checkTransfers() }
        while let retry = retries.min, retry.due <= now {
            retries.removeMin()
            if !retry.operation.waiters.isEmpty {
                retry.operation.beginAttempt()
                enqueue(retry.operation, goesFirst: true)
            }
        }
        var admitted = admit()
        if running.isEmpty && admitted == 0 { return sleepMilliseconds }
        repeat {
            var count: Int32 = 0
            curl_multi_perform(multi.pointer, &count)
            admitted = readMessages() ? admit() : 0
        } while admitted > 0
        return sleepMilliseconds
    }

    private var sleepMilliseconds: Int32 {
        var next = retries.min?.due ?? .infinity
        if !running.isEmpty { next = min(next, nextCheck) }
        guard next < .infinity else { return 3_600_000 }
        return Int32(max(1, min(3_600_000, ((next - monotonicSeconds()) * 1000).rounded(.up))))
    }

    private func prepareThread() {
        isThreadPrepared = true
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        // libidn2 reads international host names in the thread's locale; the process's stays as it is.
        if let locale = newlocale(Int32(LC_CTYPE_MASK), "C.UTF-8", nil) { uselocale(locale) }
    }

    /// Starts what waits while there are slots; returns how many were started.
    private func admit() -> Int {
        var started = 0
        while !isSuspended, activeDownloadCount < maxConcurrentDownloads, let operation = queue.next() {
            operation.slotHost = operation.request.host
            if operation.waiters.isEmpty {
                releaseSlot(of: operation)
            } else if startTransfer(of: operation) {
                started += 1
            }
        }
        return started
    }

    private func readMessages() -> Bool {
        var didRead = false
        var rest: Int32 = 0
        while let message = curl_multi_info_read(multi.pointer, &rest) {
            guard message.pointee.msg == CURLMSG_DONE, let handle = CurlHandle.from(easy: message.pointee.easy_handle),
                let operation = handle.operation
            else { continue }
            // The message is gone once the handle is removed.
            let code = message.pointee.data.result
            didFinishTransfer(of: operation, on: handle, code: code)
            didRead = true
        }
        return didRead
    }

    /// Ends what passed a limit, and parks what is silent.
    private func checkTransfers() {
        nextCheck = now + checkInterval
        for operation in running {
            if let error = operation.check(now: now, limits: configuration) {
                if let handle = operation.handle, operation.headerIsComplete, handle.status >= 300 {
                    didFinishTransfer(of: operation, on: handle, code: CURLE_OPERATION_TIMEDOUT)
                } else {
                    stopTransfer(of: operation)
                    fail(operation, error)
                }
                continue
            }
            let isSilent = now - operation.progress.lastByte >= configuration.parkAfter
            if isSilent && !operation.isParked && parkedCount < configuration.maxParkedDownloads {
                operation.isParked = true
                parkedCount += 1
            } else if !isSilent && operation.isParked {
                operation.isParked = false
                parkedCount -= 1
            }
        }
    }

    // MARK: One operation

    private func enqueue(_ operation: DownloadOperation, goesFirst: Bool = false) {
        queue.enqueue(
            operation, host: operation.request.host, priority: operation.priority,
            limit: configuration.connectionLimit(to: operation.request), goesFirst: goesFirst)
    }

    private func releaseSlot(of operation: DownloadOperation) {
        guard let host = operation.slotHost else { return }
        operation.slotHost = nil
        queue.release(host: host)
    }

    private func startTransfer(of operation: DownloadOperation) -> Bool {
        do throws(WebImageError) {
            try admitAddress(of: operation)
            let handle = try takeHandle(for: operation)
            operation.beginTransfer(on: handle, now: now)
            handle.begin(operation, headers: headers(for: operation))
            let status = curl_multi_add_handle(multi.pointer, handle.pointer)
            guard status == CURLM_OK else {
                operation.handle = nil
                handle.end()
                throw WebImageError(
                    .localFault, "curl: \(String(cString: curl_multi_strerror(status)))",
                    underlyingCode: status.rawValue)
            }
        } catch {
            releaseSlot(of: operation)
            fail(operation, error)
            return false
        }
        if running.isEmpty { nextCheck = now + checkInterval }
        operation.index = running.count
        running.append(operation)
        return true
    }

    /// Behind a proxy only the proxy is dialled, so that an address in the URL is judged here.
    private func admitAddress(of operation: DownloadOperation) throws(WebImageError) {
        let request = operation.request
        operation.isNamedByOperator = named.contains { $0.matches(request) }
        guard configuration.proxy != nil else { return }
        if !operation.isNamedByOperator, let address = request.literalAddress,
            let reason = configuration.addressPolicy.refusal(of: address, port: request.port)
        {
            var error = WebImageError(.refused, reason)
            error.refusedAddress = "\(request.host):\(request.port)"
            throw error
        }
        operation.isNamedByOperator = true
    }

    private func takeHandle(for operation: DownloadOperation) throws(WebImageError) -> CurlHandle {
        let keepsCookies = operation.options.contains(.handleCookies)
        if let handle = keepsCookies ? idleCookieHandles.popLast() : idleHandles.popLast() { return handle }
        let share: CurlShare
        if keepsCookies {
            if let present = cookieShare { share = present } else { share = try CurlShare(cookies: true) }
            cookieShare = share
        } else {
            share = plainShare
        }
        return try CurlHandle(
            configuration: configuration, share: share, keepsCookies: keepsCookies, connectTo: connectTo,
            resolve: resolve)
    }

    private func headers(for operation: DownloadOperation) -> CurlList {
        let own = operation.key.headers
        guard !own.isEmpty else { return operation.isAtOrigin ? headers : headersWithoutCredentials }
        let names = Set(own.map { $0.name.lowercased() })
        let all = configuration.headers.filter { !names.contains($0.name.lowercased()) } + own
        return CurlList(headers: operation.isAtOrigin ? all : all.filter { !$0.isCredential })
    }

    /// Takes the transfer out of curl and gives its slots back; nothing where there is none.
    private func stopTransfer(of operation: DownloadOperation) {
        if let handle = operation.handle {
            curl_multi_remove_handle(multi.pointer, handle.pointer)
            handle.end()
            operation.handle = nil
            if handle.keepsCookies { idleCookieHandles.append(handle) } else { idleHandles.append(handle) }
            if operation.isParked { parkedCount -= 1 }
            operation.isParked = false
            let last = running.removeLast()
            if last !== operation {
                running[operation.index] = last
                last.index = operation.index
            }
        }
        releaseSlot(of: operation)
    }

    private func didFinishTransfer(of operation: DownloadOperation, on handle: CurlHandle, code: CURLcode) {
        let status = handle.status
        let end = TransferEnd(operation: operation, handle: handle, code: code, status: status)
        switch end {
        case .image:
            let image = handle.image(for: operation, body: operation.takeBody())
            stopTransfer(of: operation)
            complete(operation, .success(image))
        case .redirect(let location):
            stopTransfer(of: operation)
            follow(location, of: operation)
        case .failure(let error):
            stopTransfer(of: operation)
            fail(operation, error)
        }
    }

    /// Every hop goes through the queue and the checks of a first one.
    private func follow(_ location: String, of operation: DownloadOperation) {
        guard operation.redirects < configuration.maxRedirects else {
            return fail(
                operation, WebImageError(.tooManyRedirects, "more than \(configuration.maxRedirects) redirects"))
        }
        do throws(WebImageError) {
            operation.follow(try operation.request.redirected(to: location))
        } catch {
            return fail(operation, error)
        }
        enqueue(operation, goesFirst: true)
    }

    private func fail(_ operation: DownloadOperation, _ error: WebImageError) {
        let pause = retryPolicy.delay(
            afterAttempts: operation.attempts, error: error, random: Double.random(in: 0...1))
        guard let pause else {
            var error = error
            error.attempts = operation.attempts
            return complete(operation, .failure(error))
        }
        nextWaiter += 1
        retries.insert(Retry(due: now + pause, number: nextWaiter, operation: operation))
    }

    private func complete(_ operation: DownloadOperation, _ result: Result<DownloadedImage, WebImageError>) {
        if operations[operation.key] === operation { operations[operation.key] = nil }
        let waiters = operation.waiters
        operation.waiters = []
        for waiter in waiters { waiter.continuation.resume(returning: result) }
    }
}

/// An operation that waits for its next try.
private struct Retry: Comparable {
    let due: Double
    let number: Int
    let operation: DownloadOperation

    static func < (lhs: Self, rhs: Self) -> Bool { (lhs.due, lhs.number) < (rhs.due, rhs.number) }
    static func == (lhs: Self, rhs: Self) -> Bool { lhs.number == rhs.number }
}

/// The way from the thread to its downloader, which it must not keep alive.
private final class DownloaderReference: Sendable {
    private struct Weak: Sendable { weak var downloader: ImageDownloader? }
    private let weak = Locked(Weak())
    var downloader: ImageDownloader? { weak.withLock { $0.downloader } }
    func set(_ downloader: ImageDownloader) { weak.withLock { $0.downloader = downloader } }
}

extension WebImageError {
    fileprivate static let downloadCancelled = WebImageError(.cancelled, "cancelled")
}

/// CLOCK_MONOTONIC in seconds.
private func monotonicSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
