internal import CCurl

/// The result of a transfer, from curl's result and the response.
enum TransferEnd {
    case image(DownloadedImage)
    case redirect(location: String)
    /// The server has not sent the rest that was asked for: the whole is. Or curl refused the coding of the body: it is left to us.
    case again
    case failure(WebImageError)

    /// curl's timeout code, for limits enforced here.
    static let timedOut = Int32(bitPattern: CURLE_OPERATION_TIMEDOUT.rawValue)

    /// * `text`: curl's error text, if any.
    init(
        _ response: inout ReceivedResponse, _ info: CurlInfo, of operation: DownloadOperation,
        _ connecting: DialledAddresses, code: Int32, text: String?
    ) {
        let code = CURLcode(rawValue: UInt32(bitPattern: code))
        let status = info.status
        switch response.abort {
        case .failure(let error):
            self = .failure(error)
            return
        case .anotherPart:
            self = .again
            return
        case .unwantedBody, nil: break
        }
        // An unwanted body may be truncated, late or too large: the status counts. curl checks the size before the blank line after the
        // header.
        let headerIsComplete = response.headerIsComplete || code == CURLE_FILESIZE_EXCEEDED
        if headerIsComplete && status >= 200 { response.judge(info, of: operation) }
        let isBodyUnwanted = status >= 200 && !response.isWanted && headerIsComplete
        guard !response.refusesRest(status, isPacked: code == CURLE_BAD_CONTENT_ENCODING) else {
            self = .again
            return
        }
        if code == CURLE_BAD_CONTENT_ENCODING, headerIsComplete, !operation.leavesCodings,
            !ContentCoding(info.headers("Content-Encoding")).isKnown
        {
            operation.leaveCodings()
            self = .again
            return
        }
        guard code == CURLE_OK || isBodyUnwanted else {
            self = .failure(
                WebImageError(curl: code, text: text, progress: response.progress, connecting: connecting))
            return
        }
        guard headerIsComplete else {
            self = .failure(WebImageError(.connectionLost, "the response ended in its header", isTransient: true))
            return
        }
        if var error = response.error {
            error.httpStatus = error.httpStatus ?? status
            self = .failure(error)
            return
        }
        guard !response.lacksRest(status) else {
            self = .again
            return
        }
        switch status {
        case 202 where response.isWanted && response.received == 0 && !operation.key.options.contains(.unasked):
            let demand = AccessDemand(status: status, headers: info.values)
            self = .failure(WebImageError(status: status, retryAfter: nil, demand: demand))
        case _ where response.isWanted: self = .image(DownloadedImage(&response, info, of: operation))
        case 304 where operation.key.options.contains(.conditional):
            self = .image(DownloadedImage(&response, info, of: operation))
        case 301, 302, 303, 307, 308:
            if let location = info.location, !location.isEmpty {
                self = .redirect(location: location)
            } else {
                self = .failure(
                    WebImageError(.invalidDownloadStatusCode, "HTTP \(status) without a Location", httpStatus: status))
            }
        default:
            let demand = AccessDemand(status: status, headers: info.values)
            self = .failure(WebImageError(status: status, retryAfter: info.retryAfter, demand: demand))
        }
    }
}

extension DownloadedImage {
    /// The result of a successful response; takes its body.
    fileprivate init(_ response: inout ReceivedResponse, _ info: CurlInfo, of operation: DownloadOperation) {
        let version = info.httpVersion
        let announced =
            info.contentLength != nil || version == "2" || version == "3"
            || info.header("Transfer-Encoding")?.lowercased().contains("chunked") ?? false
        let (control, expires) = (info.headers("Cache-Control"), info.header("Expires"))
        // Most responses say nothing of it, and a search for one field goes over all of them.
        let freshFor =
            control.isEmpty && expires == nil
            ? nil
            : Freshness.seconds(
                control: control, expires: expires, date: info.header("Date"), age: info.header("Age"),
                now: WallClock.seconds)
        self.init(
            body: response.takeBody(), statusCode: info.status, eTag: info.header("ETag"),
            lastModified: info.header("Last-Modified"), contentType: info.header("Content-Type"),
            effectiveURL: operation.request.text, redirectCount: operation.redirects, tries: operation.tries,
            remoteAddress: info.remoteAddress, timing: info.timing, httpVersion: version,
            lengthWasAnnounced: announced, freshFor: freshFor, resumedFrom: response.resumedFrom)
    }
}
