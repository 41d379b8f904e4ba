/// One URL on its way: its waiters, its tries and redirects, and the transfer it has now (SDWebImageDownloaderOperation).
///
/// Only the downloader's thread uses it.
final class DownloadOperation {
    /// What makes two downloads the same transfer.
    struct Key: Hashable {
        let url: String
        let options: DownloadOptions
        let headers: [HTTPHeader]
    }

    /// Why curl was told to end a transfer.
    enum Abort {
        /// The status decides; the rest of the body is not wanted.
        case unwantedBody
        case failure(WebImageError)
    }

    let key: Key
    let priority: Int
    var options: DownloadOptions { key.options }
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
    /// Whether the operator named the address the hop goes to.
    var isNamedByOperator = false
    /// When it began to wait, for a slot or for its next try.
    var since = 0.0
    /// When its next try is due, and why the last one failed, while it pauses between the two.
    var pause: (due: Double, error: WebImageError)?
    /// The host that lent it a slot.
    var slotHost: String?

    // The transfer now.
    var handle: CurlHandle?
    var index = 0
    var isParked = false
    private(set) var progress = TransferProgress()
    private(set) var body: ImageBody?
    private(set) var received = 0
    private(set) var abort: Abort?
    var socketErrno: Int32 = 0
    private(set) var refusal: (target: String, reason: String)?
    private(set) var dialled: [(address: IPAddress, port: Int)] = []
    private var limits: Limits
    private var isWanted = true
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
        var openTemporaryFile: (@Sendable () throws(WebImageError) -> Int32)?
        var inspectHeader: (@Sendable (UnsafeRawBufferPointer) throws(WebImageError) -> Bool)?
        /// The rest of an error's body that is read, so that the connection can be used again.
        let maxUnwantedBytes = 16 << 10

        init(_ configuration: ImageDownloader.Configuration) {
            maxBodyBytes = configuration.maxBodyBytes
            maxHeaderBytes = configuration.maxHeaderBytes
            maxHeaderLines = configuration.maxHeaderLines
            memoryLimit = configuration.memoryLimit
            openTemporaryFile = configuration.openTemporaryFile
            inspectHeader = configuration.inspectHeader
        }
    }

    init(key: Key, request: RequestURL, priority: Int, attemptsUsed: Int, limits: Limits) {
        self.key = key
        self.priority = priority
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
    var user: String? { isAtOrigin ? start.user : nil }
    var password: String? { isAtOrigin ? start.password : nil }

    func beginTransfer(on handle: CurlHandle, now: Double) {
        self.handle = handle
        isParked = false
        progress.beginHop(now: now)
        body = nil
        received = 0
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
        progress.check(now: now, limits: limits)
    }

    // MARK: curl's callbacks

    func willSendRequest() { progress.requestWasSent = true }

    func didReceiveHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        headerBytes += line.count
        headerLines += 1
        progress.bytes += line.count
        if line.starts(with: "HTTP/".utf8) {
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

    func beginBody(status: Int, length: Int?) {
        isWanted = (200..<300).contains(status)
        guard isWanted else {
            if length ?? 0 > limits.maxUnwantedBytes { abort = .unwantedBody }
            return
        }
        let body = ImageBody(memoryLimit: limits.memoryLimit, spool: limits.openTemporaryFile)
        if let length, length <= limits.maxBodyBytes { body.reserve(length) }
        self.body = body
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
            return true
        } catch {
            abort = .failure(error)
            return false
        }
    }

    private func inspect() throws(WebImageError) {
        // Twice as much each time: what is looked at adds up to twice the header. Never in a file.
        guard received >= nextInspection, received <= limits.memoryLimit, let inspect = limits.inspectHeader,
            !key.options.contains(.uninspected), let body
        else { return }
        let isDone = try body.withUnsafeBytes { bytes throws(WebImageError) in try inspect(bytes) }
        nextInspection = isDone ? .max : received * 2
    }

    func wasRefused(_ target: IPAddress, port: Int, reason: String) {
        refusal = (target.isIPv6 ? "[\(target)]:\(port)" : "\(target):\(port)", reason)
    }

    func didDial(_ target: IPAddress, port: Int) { dialled.append((target, port)) }
}
