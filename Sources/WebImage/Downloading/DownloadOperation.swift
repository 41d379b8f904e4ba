internal import Threading

/// One URL on its way: its waiters, its tries and redirects, and the transfer it has now (SDWebImageDownloaderOperation).
///
/// Only the downloader's thread uses it.
final class DownloadOperation {
    /// What makes two downloads the same transfer.
    struct Key: Hashable {
        let url: String
        let options: DownloadOptions
        let headers: [HTTPHeader]
        /// The number of its jar; nil where it neither sends nor keeps cookies.
        let jar: UInt64?
    }

    /// Why curl was told to end a transfer.
    enum Abort {
        /// The status decides; the rest of the body is not wanted.
        case unwantedBody
        case failure(WebImageError)
    }

    let key: Key
    let priority: Int
    /// Transfers at once to its host, as its first caller asks; 0: no limit, nil: as the configuration says.
    let maxConnectionsPerHost: Int?
    var options: DownloadOptions { key.options }
    /// Its jar, which lasts at least as long as it does.
    var cookies: CookieJar?
    /// Who gets the result. Empty: nobody any more.
    var waiters: [DownloadCall] = []
    /// The URL of the first hop of every try.
    let start: RequestURL
    /// The URL of the hop now.
    private(set) var request: RequestURL
    private(set) var redirects = 0
    /// Tries begun, those of the caller included.
    private(set) var attempts: Int
    /// Those of them that only found out that nobody is there: they do not use up the URL's tries.
    var excused = 0
    /// Whether its last try found nobody there.
    var metSilence = false
    /// Whether its transfer finds out whether a silent host is there.
    var isProbe = false
    /// Whether the operator named the address the hop goes to.
    var isNamedByOperator = false
    /// When it began to wait, for a slot or for its next try.
    var since = 0.0
    /// When its next try is due, and why the last one failed, while it pauses between the two.
    var pause: (due: Double, error: WebImageError)?
    /// What counts as its hop's host, since it was put into the queue.
    var host = ""
    /// The host that lent it a slot.
    var slotHost: String?
    /// All headers, where a filter or a modifier made them.
    var requestHeaders: [HTTPHeader]?
    /// Who the request speaks for at this hop.
    var credential: Credential?
    /// Whether a transfer of it has begun.
    private(set) var hasBegun = false
    /// What all of its transfers have taken.
    private(set) var spent = TransferTime()
    /// What the try before has left to go on with.
    var partial: PartialBody?
    /// Hears of a response's header and of bytes; nil where nobody wants to.
    var observer: DownloadObserver?
    /// How its last transfer ended, where somebody listens.
    var ending: Ending?

    // The transfer now.
    var handle: CurlHandle?
    var index = 0
    var isParked = false
    private(set) var progress = TransferProgress()
    private(set) var body: ImageBody?
    private(set) var received = 0
    /// Bytes of the whole body, where the response says it.
    private(set) var expected: Int?
    /// Bytes of it that an earlier try brought.
    private(set) var resumedFrom = 0
    /// Whether this transfer asks for the rest of `partial`.
    var asksForRest = false
    var abort: Abort?
    var socketErrno: Int32 = 0
    private(set) var refusal: (target: String, reason: String, isFinal: Bool)?
    /// The addresses of its transfer's connections, where it made any.
    private(set) var dialled: [(address: IPAddress, port: Int)] = []
    private var limits: Limits
    private(set) var isWanted = true
    /// Why the header of the response ends it, where the rules say so.
    private(set) var responseError: WebImageError?
    private var isJudged = false
    private var resumedValidator: String?
    /// Whether the last response's header ended: curl is content with one that the end of the connection cut.
    private(set) var headerIsComplete = false
    private var headerBytes = 0
    private var headerLines = 0
    private var nextInspection = 1

    /// What the transfer has to observe of the configuration.
    struct Limits {
        var maxBodyBytes: Int
        var maxHeaderBytes: Int
        var maxHeaderLines: Int
        var memoryLimit: Int
        /// Where a large body is written, by other threads than the downloader's.
        var spool: BodySpool.Place?
        var inspectHeader: (@Sendable (UnsafeRawBufferPointer) throws(WebImageError) -> Bool)?
        var rules: ResponseRules?
        /// The rest of an error's body that is read, so that the connection can be used again.
        let maxUnwantedBytes = 16 << 10

        init(_ configuration: ImageDownloader.Configuration) {
            maxBodyBytes = configuration.maxBodyBytes
            maxHeaderBytes = configuration.maxHeaderBytes
            maxHeaderLines = configuration.maxHeaderLines
            memoryLimit = configuration.memoryLimit
            spool = configuration.openTemporaryFile.map { open in
                let pool = configuration.filePool ?? ThreadPool(threads: 1, name: "spool")
                return BodySpool.Place(open: open, pool: pool, calls: configuration.fileCalls)
            }
            inspectHeader = configuration.inspectHeader
            rules = ResponseRules(configuration)
        }
    }

    init(
        key: Key, request: RequestURL, priority: Int, maxConnectionsPerHost: Int? = nil, attemptsUsed: Int,
        limits: Limits
    ) {
        self.key = key
        self.priority = priority
        self.maxConnectionsPerHost = maxConnectionsPerHost
        self.limits = limits
        start = request
        self.request = request
        attempts = attemptsUsed
    }

    /// Begins a try at its first hop.
    func beginAttempt() {
        attempts += 1
        pause = nil
        redirects = 0
        request = start
        progress = TransferProgress()
    }

    /// Goes on at the next hop of the same try.
    func follow(_ next: RequestURL) {
        redirects += 1
        request = next
    }

    /// Whether the hop is still at the site the user's credentials are for.
    var isAtOrigin: Bool { redirects == 0 || request.origin == start.origin }

    func beginTransfer(on handle: CurlHandle, now: Double) {
        self.handle = handle
        hasBegun = true
        isParked = false
        progress.beginHop(now: now)
        spent.beginHop()
        body = nil
        received = 0
        expected = nil
        resumedFrom = 0
        isWanted = true
        isJudged = false
        responseError = nil
        resumedValidator = nil
        abort = nil
        socketErrno = 0
        refusal = nil
        dialled.removeAll(keepingCapacity: true)
        headerIsComplete = false
        headerBytes = 0
        headerLines = 0
        nextInspection = 1
    }

    /// The body belongs to the result from now on.
    func takeBody() -> ImageBody {
        defer { body = nil }
        return body ?? ImageBody([])
    }

    /// The error where the transfer has passed a limit of time or speed.
    func check(now: Double, limits: ImageDownloader.Configuration) -> WebImageError? {
        // It is our own limit that keeps its bytes.
        let isHeldBack = handle?.isPaused == true
        if isHeldBack { progress.wasHeldBack(now: now) }
        spent.count(progress, isHeldBack: isHeldBack, now: now)
        return spent.check(limits, attempts: attempts) ?? progress.check(now: now, limits: limits)
    }

    /// Counts what the transfer took since the last look; it ends now.
    func countSpent(now: Double) { spent.count(progress, isHeldBack: handle?.isPaused == true, now: now) }

    /// This process did not run for so long that its timeouts say nothing about the server.
    func wasFrozen(now: Double) {
        progress.wasHeldBack(now: now)
        spent.count(progress, isHeldBack: true, now: now)
    }

    /// Keeps what has come, where the next try can go on from there. Otherwise what was kept before stays.
    func keepPartial(_ handle: CurlHandle, least: Int?, error: WebImageError) {
        guard let body, body.count > 0 else { return }
        partial = nil
        guard let least, error.isTransient, body.count >= least, handle.header("Content-Encoding") == nil,
            handle.header("Accept-Ranges")?.lowercased() != "none",
            let validator = resumedValidator
                ?? PartialBody.validator(
                    eTag: handle.header("ETag"), lastModified: handle.header("Last-Modified"),
                    date: handle.header("Date"))
        else { return }
        partial = PartialBody(
            url: request.text, body: body, validator: validator, nextInspection: nextInspection)
    }

    /// Looks at the header of the response, once: at its body's first byte, or where there is none at its end.
    func judge(_ handle: CurlHandle) {
        guard !isJudged else { return }
        isJudged = true
        let status = handle.status
        isWanted = (200..<300).contains(status)
        guard !handle.isRedirect else { return }
        observer?.didReceiveResponse(self, status)
        guard let rules = limits.rules, status != 304 else { return }
        do throws(WebImageError) {
            let response = DownloadResponse(url: request.text, statusCode: status, headers: handle.responseHeaders)
            _ = try rules.judge(response, retryAfter: handle.retryAfter)
            isWanted = true
        } catch {
            isWanted = false
            responseError = error
        }
    }

    // MARK: curl's callbacks

    func willSendRequest() { progress.requestWasSent = true }

    func didReceiveHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        headerBytes += line.count
        headerLines += 1
        progress.bytes += line.count
        if line.first == UInt8(ascii: "H"), line.starts(with: "HTTP/".utf8) {
            headerIsComplete = false
        } else if line.first == 13 || line.first == 10 {
            headerIsComplete = true
        }
        guard headerBytes <= limits.maxHeaderBytes, headerLines <= limits.maxHeaderLines + 2 else {
            let what =
                headerBytes > limits.maxHeaderBytes
                ? "\(limits.maxHeaderBytes) bytes" : "\(limits.maxHeaderLines) lines"
            abort = .failure(WebImageError(.connectionLost, "the response's header is longer than \(what)"))
            return false
        }
        return true
    }

    func beginBody(status: Int, length: Int?, handle: CurlHandle) {
        progress.hasHeader = true
        if status != 206 { expected = length }
        judge(handle)
        guard isWanted else {
            if length ?? 0 > limits.maxUnwantedBytes { abort = .unwantedBody }
            return
        }
        if asksForRest, let partial {
            self.partial = nil
            if status == 206 { return resume(partial, handle) }
        }
        expected = length
        let body = ImageBody(memoryLimit: limits.memoryLimit, place: limits.spool)
        if let length, length <= limits.maxBodyBytes { body.reserve(length) }
        self.body = body
    }

    private func resume(_ partial: PartialBody, _ handle: CurlHandle) {
        let (isRest, total) = partial.continues(with: handle.header("Content-Range"))
        guard isRest else {
            abort = .failure(
                WebImageError(.connectionLost, "the server sent another part than the rest", isTransient: true))
            return
        }
        body = partial.body
        resumedValidator = partial.validator
        nextInspection = partial.nextInspection
        resumedFrom = partial.count
        received = partial.count
        expected = total
    }

    /// Why a transfer that ended well has not brought the rest that it asked for; the next try begins from the start.
    func restError(_ status: Int) -> WebImageError? {
        guard asksForRest else { return nil }
        if status == 416 {
            partial = nil
            return WebImageError(
                .connectionLost, "the server does not have the rest any more", httpStatus: status, isTransient: true)
        }
        let isWhole = resumedFrom == 0 ? status != 206 : expected.map { $0 == received } ?? true
        guard !isWhole else { return nil }
        partial = nil
        body = nil
        return WebImageError(.connectionLost, "the rest of the body is not what was missing", isTransient: true)
    }

    /// False ends the transfer; `abort` says why.
    func didReceiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        received += bytes.count
        progress.bytes += bytes.count
        guard isWanted else {
            if received > limits.maxUnwantedBytes { abort = .unwantedBody }
            return abort == nil
        }
        guard received <= limits.maxBodyBytes else {
            abort = .failure(WebImageError(.tooLarge, "more than \(limits.maxBodyBytes) bytes"))
            return false
        }
        do throws(WebImageError) {
            try body?.append(bytes)
            try inspect()
            observer?.didReceiveBytes(self)
            return true
        } catch {
            abort = .failure(error)
            return false
        }
    }

    /// Ends a transfer whose body is forbidden, or was blown up.
    func refuseBody(_ error: WebImageError) { abort = .failure(error) }

    private func inspect() throws(WebImageError) {
        // Twice as much each time: what is looked at adds up to twice the header. Never in a file.
        guard received >= nextInspection, received <= limits.memoryLimit, let inspect = limits.inspectHeader,
            !key.options.contains(.uninspected), let body
        else { return }
        let isDone = try body.withUnsafeBytes { bytes throws(WebImageError) in try inspect(bytes) }
        nextInspection = isDone ? .max : received * 2
    }

    /// * `isFinal`: nobody can open it, so nobody is told how.
    func wasRefused(_ target: IPAddress, port: Int, reason: String, isFinal: Bool = false) {
        refusal = (target.isIPv6 ? "[\(target)]:\(port)" : "\(target):\(port)", reason, isFinal)
    }

    func didDial(_ target: IPAddress, port: Int) { dialled.append((target, port)) }
}
