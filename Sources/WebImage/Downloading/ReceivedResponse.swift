/// The state of one response: header size, body, and whether the body is wanted. Filled in by the curl callbacks of a ``CurlHandle``.
struct ReceivedResponse {
    enum Abort {
        /// The status is sufficient; the rest of the body is not needed.
        case unwantedBody
        /// A part that does not belong to the bytes that are there.
        case anotherPart
        case failure(WebImageError)
    }

    struct Limits {
        let maxBodyBytes: Int
        let maxHeaderBytes: Int
        let maxHeaderLines: Int
        let memoryLimit: Int
        let spool: BodySpool.Place?
        let inspectHeader: (@Sendable (UnsafeRawBufferPointer) throws(WebImageError) -> ImageHeader?)?
        let rules: ResponseRules?
        /// How much of an unwanted body is read so that the connection can be reused.
        let maxUnwantedBytes = 16 << 10

        init(_ configuration: ImageDownloader.Configuration, spool: BodySpool.Place?) {
            maxBodyBytes = configuration.maxBodyBytes
            maxHeaderBytes = configuration.maxHeaderBytes
            maxHeaderLines = configuration.maxHeaderLines
            memoryLimit = configuration.memoryLimit
            self.spool = spool
            inspectHeader = configuration.inspectHeader
            rules = ResponseRules(configuration)
        }
    }

    private var transfer = TransferProgress()
    private let header: CurlHeader
    private(set) var bodyHasBegun = false
    private(set) var body: ImageBody?
    /// What takes codings off that curl leaves.
    private var layers: BodyLayers?
    private(set) var received = 0
    private(set) var expected: Int?
    private(set) var resumedFrom = 0
    private var aborted: Abort?
    private(set) var isWanted = true
    /// Why the response is not wanted: its header by the response rules, or its image by those of the download.
    private(set) var error: WebImageError?
    private var limits: Limits
    /// Whether the request asks for the rest of the operation's partial body.
    private var requestsRest = false
    private var isJudged = false
    private var resumed: (validator: String, representation: PartialBody.Representation)?
    private var nextInspection = 1
    /// How much of the body had been received when it became unwanted.
    private var wantedBytes = 0

    init(limits: Limits, header: CurlHeader) {
        self.limits = limits
        self.header = header
    }

    /// Including the header's bytes.
    var progress: TransferProgress {
        var progress = transfer
        progress.bytes += header.bytes
        return progress
    }

    /// Why the transfer was aborted here.
    var abort: Abort? {
        guard header.isTooLong else { return aborted }
        let what = header.tooManyBytes ? "\(limits.maxHeaderBytes) bytes" : "\(limits.maxHeaderLines) lines"
        return .failure(WebImageError(.connectionLost, "the response's header is longer than \(what)"))
    }

    var headerIsComplete: Bool { header.isComplete }

    mutating func begin(_ operation: DownloadOperation, now: Double) {
        limits = operation.profile.limits
        transfer = operation.progress
        transfer.beginHop(now: now)
        header.begin(maxBytes: limits.maxHeaderBytes, maxLines: limits.maxHeaderLines + 2)
        requestsRest = operation.rest != nil
        bodyHasBegun = false
        body = nil
        layers = nil
        received = 0
        expected = nil
        resumedFrom = 0
        aborted = nil
        isWanted = true
        error = nil
        isJudged = false
        resumed = nil
        nextInspection = 1
        wantedBytes = 0
    }

    // MARK: curl's callbacks

    mutating func willSendRequest() { transfer.requestWasSent = true }

    mutating func beginBody(_ info: CurlInfo, of operation: DownloadOperation) {
        bodyHasBegun = true
        let (status, length) = (info.status, info.contentLength)
        transfer.hasHeader = true
        if status != 206 { expected = length }
        judge(info, of: operation)
        guard isWanted else {
            if length ?? 0 > limits.maxUnwantedBytes { aborted = .unwantedBody }
            return
        }
        if requestsRest, let partial = operation.partial {
            operation.keep(nil)
            if status == 206 { return resume(partial, info) }
        }
        if header.isCoded {
            let coding = ContentCoding(info.headers("Content-Encoding"))
            if !coding.isKnown || operation.leavesCodings { layers = BodyLayers(coding) }
        }
        expected = layers == nil ? length : nil
        if let expected, expected > limits.maxBodyBytes { return refuse(tooLarge) }
        let body = ImageBody(memoryLimit: limits.memoryLimit, place: limits.spool)
        if let length, length <= limits.maxBodyBytes { body.reserve(length) }
        self.body = body
    }

    private mutating func resume(_ partial: PartialBody, _ info: CurlInfo) {
        guard info.header("Content-Encoding") == nil,
            let rest = partial.rest(info.header("Content-Range"), of: info.representation(length: nil))
        else {
            aborted = .anotherPart
            return
        }
        body = partial.body
        resumed = (partial.validator, rest.representation)
        nextInspection = partial.nextInspection
        resumedFrom = partial.count
        received = partial.count
        expected = rest.end
    }

    mutating func didReceiveBody(_ bytes: UnsafeRawBufferPointer, of operation: DownloadOperation) -> Bool {
        transfer.didReceive(bytes.count)
        guard isWanted, let layers else { return take(bytes, of: operation) }
        guard let isWanted = layers.read(bytes, take: { take($0, of: operation) }) else {
            refuse(WebImageError(.badImageData, layers.failure ?? ""))
            return false
        }
        return isWanted
    }

    /// Whether few bytes may become many here.
    var isUnpacked: Bool { layers != nil }

    private mutating func take(_ bytes: UnsafeRawBufferPointer, of operation: DownloadOperation) -> Bool {
        received += bytes.count
        guard isWanted else {
            if received - wantedBytes > limits.maxUnwantedBytes { aborted = .unwantedBody }
            return abort == nil
        }
        guard received <= limits.maxBodyBytes else {
            refuse(tooLarge)
            return false
        }
        do throws(WebImageError) {
            try body?.append(bytes)
            try inspect(operation)
            operation.observer?.didReceiveBytes(operation, received, of: expected)
            return true
        } catch {
            if error.code == .imageRefused { return refuseImage(error) }
            aborted = .failure(error)
            return false
        }
    }

    private var tooLarge: WebImageError {
        WebImageError(.tooLarge, "more than \(limits.maxBodyBytes) bytes", reason: .bytes)
    }

    /// Drops the body. A short rest is still read, so that the connection can be reused.
    private mutating func refuseImage(_ refusal: WebImageError) -> Bool {
        var error = refusal
        let rest = expected.map { max(0, $0 - received) }
        error.savedBytes = rest ?? 0
        self.error = error
        isWanted = false
        wantedBytes = received
        body = nil
        guard let rest, rest <= limits.maxUnwantedBytes else {
            aborted = .unwantedBody
            return false
        }
        self.error?.savedBytes = 0
        return true
    }

    private mutating func inspect(_ operation: DownloadOperation) throws(WebImageError) {
        // Doubles the size each time, so that inspections add up to twice the header. Never reads a file.
        guard received >= nextInspection, received <= limits.memoryLimit, let inspect = limits.inspectHeader,
            !operation.key.options.contains(.uninspected), let body
        else { return }
        let header = try body.withUnsafeBytes { bytes throws(WebImageError) in try inspect(bytes) }
        nextInspection = header == nil ? received * 2 : .max
        if let header { try operation.key.rules?.judge(header) }
    }

    mutating func refuse(_ error: WebImageError) { aborted = .failure(error) }

    // MARK: Time limits

    mutating func wasThrottled(now: Double) { transfer.wasThrottled(now: now, headerBytes: header.bytes) }

    /// * `dripTime`: seconds after which a body that comes in drips is known as one.
    mutating func check(
        now: Double, limits: ImageDownloader.Configuration, dripTime: Double
    ) -> WebImageError? {
        transfer.checkForDrips(now: now, every: dripTime, lowSpeedLimit: limits.lowSpeedLimit)
        return transfer.check(
            now: now, headerBytes: header.bytes, hasWholeHeader: headerIsComplete, limits: limits)
    }

    // MARK: End of the transfer

    /// Evaluates the header once: at the body's first byte, or at the end without a body.
    mutating func judge(_ info: CurlInfo, of operation: DownloadOperation) {
        guard !isJudged else { return }
        isJudged = true
        let status = info.status
        isWanted = (200..<300).contains(status)
        guard !info.isRedirect else { return }
        defer {
            operation.observer?.didReceiveResponse(
                operation, status, isWanted: isWanted, received: received, expected: expected)
        }
        guard let rules = limits.rules, status != 304 else { return }
        do throws(WebImageError) {
            let response = DownloadResponse(
                url: operation.request.text, statusCode: status, headers: info.responseHeaders)
            _ = try rules.judge(response, retryAfter: info.retryAfter)
            isWanted = true
        } catch {
            isWanted = false
            self.error = error
        }
    }

    /// Whether the server refuses the request for the rest, by its status, by another coding, or because the rules take no part: it may still
    /// send the whole.
    func refusesRest(_ status: Int, isPacked: Bool) -> Bool {
        guard requestsRest, headerIsComplete else { return false }
        return status == 400 || status == 403 || status == 416 || status == 206 && (error != nil || isPacked)
    }

    /// Whether a successful transfer did not deliver the requested rest.
    func lacksRest(_ status: Int) -> Bool {
        guard requestsRest else { return false }
        return resumedFrom == 0 ? status == 206 : expected != received
    }

    mutating func takeBody() -> ImageBody {
        defer { body = nil }
        return body ?? ImageBody([])
    }

    mutating func dropBody() { body = nil }

    /// Keeps the received bytes in the operation if its next try can resume them. Without any, an earlier partial body is kept, unless
    /// the server fails at requests for the rest.
    func keepPartial(_ info: CurlInfo, of operation: DownloadOperation, error: WebImageError) {
        if requestsRest, info.status >= 500 { operation.keep(nil) }
        guard let body, body.count > 0 else { return }
        operation.keep(nil)
        guard let least = operation.profile.configuration.resumeFrom, error.isTransient, body.count >= least,
            info.header("Content-Encoding") == nil,
            info.header("Accept-Ranges")?.lowercased() != "none"
        else { return }
        let representation = resumed?.representation ?? info.representation(length: info.contentLength)
        guard
            let validator = resumed?.validator
                ?? PartialBody.validator(of: representation, date: info.header("Date"))
        else { return }
        operation.keep(
            PartialBody(
                url: operation.request.text, body: body, representation: representation, validator: validator,
                nextInspection: nextInspection))
    }
}

extension CurlInfo {
    /// * `length`: bytes of all of it.
    fileprivate func representation(length: Int?) -> PartialBody.Representation {
        PartialBody.Representation(eTag: header("ETag"), lastModified: header("Last-Modified"), length: length)
    }
}
