internal import CCurl

/// How a transfer ended: what curl said and what the response said, in one.
enum TransferEnd {
    case image
    case redirect(location: String)
    case failure(WebImageError)

    /// curl's code for a passed limit, for those that it does not keep itself.
    static let timedOut = Int32(bitPattern: CURLE_OPERATION_TIMEDOUT.rawValue)

    init(operation: DownloadOperation, handle: CurlHandle, code: Int32) {
        let code = CURLcode(rawValue: UInt32(bitPattern: code))
        let status = handle.status
        if case .failure(let error) = operation.abort {
            self = .failure(error)
            return
        }
        // The body that nobody wants may be cut, late or too large: its status stands. Its size curl judges before it hands out
        // the blank line that ends the header.
        let headerIsComplete = operation.headerIsComplete || code == CURLE_FILESIZE_EXCEEDED
        if headerIsComplete && status >= 200 { operation.judge(handle) }
        let isBodyUnwanted = status >= 200 && !operation.isWanted && headerIsComplete
        guard code == CURLE_OK || isBodyUnwanted else {
            self = .failure(WebImageError(curl: code, operation: operation, handle: handle))
            return
        }
        guard headerIsComplete else {
            self = .failure(WebImageError(.connectionLost, "the response ended in its header", isTransient: true))
            return
        }
        if let error = operation.responseError {
            self = .failure(error)
            return
        }
        if let error = operation.restError(status) {
            self = .failure(error)
            return
        }
        switch status {
        case _ where operation.isWanted: self = .image
        case 304 where operation.options.contains(.conditional): self = .image
        case 301, 302, 303, 307, 308:
            if let location = handle.header("Location"), !location.isEmpty {
                self = .redirect(location: location)
            } else {
                self = .failure(
                    WebImageError(.invalidDownloadStatusCode, "HTTP \(status) without a Location", httpStatus: status))
            }
        default: self = .failure(WebImageError(status: status, retryAfter: handle.retryAfter))
        }
    }
}
