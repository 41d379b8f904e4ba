internal import CCurl
internal import Glibc

// Converts the CURLcodes of HTTP transfers, keeping the code and curl's text.
extension WebImageError {
    /// * `demand`: what the server wants instead, if it says so.
    init(status: Int, retryAfter: Double?, demand: AccessDemand? = nil) {
        if status == 304 {
            self.init(.cacheNotModified, "HTTP 304", httpStatus: status)
            return
        }
        let isTransient = status == 408 || status == 425 || status == 429 || status >= 500
        let message = "HTTP \(status)" + (demand.map { " (\($0.text))" } ?? "")
        self.init(
            .invalidDownloadStatusCode, message, reason: demand?.reason, httpStatus: status, isTransient: isTransient)
        self.retryAfter = isTransient ? retryAfter : nil
    }

    /// The error for a failed transfer.
    /// * `text`: curl's error text, if any.
    init(curl code: CURLcode, text: String?, progress: TransferProgress, connecting: DialledAddresses) {
        let text = text ?? String(cString: curl_easy_strerror(code))
        let number = Int32(bitPattern: code.rawValue)
        func error(_ kind: Code, transient: Bool = false) -> WebImageError {
            WebImageError(kind, text, underlyingCode: number, isTransient: transient)
        }
        switch code {
        case CURLE_URL_MALFORMAT, CURLE_BAD_FUNCTION_ARGUMENT: self = error(.invalidURL)
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: self = error(.cannotFindHost, transient: true)
        case CURLE_COULDNT_CONNECT:
            self = Self.connectFailure(error(.cannotConnectToHost, transient: true), connecting)
        case CURLE_PROXY: self = error(.cannotConnectToHost, transient: true)
        case CURLE_OPERATION_TIMEDOUT:
            // The only time limit enforced by curl. A refused address beside one that does not respond is a timeout. A resolver timeout is
            // a DNS failure, distinguishable from a connection timeout only by curl's text.
            self = error(text.hasPrefix("Resolving timed out") ? .cannotFindHost : .timedOut, transient: true)
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CIPHER, CURLE_SSL_CERTPROBLEM,
            CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT, CURLE_USE_SSL_FAILED:
            self = error(.secureConnectionFailed)
        case CURLE_FILESIZE_EXCEEDED:
            self = error(.tooLarge)
            reason = .bytes
        case CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
            CURLE_SSL_ENGINE_INITFAILED,
            CURLE_FAILED_INIT, CURLE_READ_ERROR:
            self = error(.localFault)
        case CURLE_OUT_OF_MEMORY:
            // curl 7.88 also reports this for a header line over 100 KB. Before the request was sent, it is a local lack of memory.
            self = progress.requestWasSent ? error(.connectionLost) : error(.localFault)
            if progress.requestWasSent, !progress.hasHeader { message = Self.longHeader }
        // The body arrived, but not in a known encoding of an image.
        case CURLE_BAD_CONTENT_ENCODING: self = error(.badImageData)
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL:
            // Not HTTP/1 or 2: garbage, HTTP/0.9. Not truncated, so a retry is useless.
            self = error(.connectionLost)
        case CURLcode(rawValue: 100):
            // CURLE_TOO_LARGE, since curl 8.6: the same header line.
            self = error(.connectionLost)
            message = Self.longHeader
        default:
            // Short body, reset, empty reply, HTTP/2 framing, and codes that later versions of curl may add.
            self = error(.connectionLost, transient: true)
        }
    }

    /// The error for a transfer whose connection a ``FloodGuard`` shut down.
    static func flood(_ code: Int32) -> WebImageError {
        var error = WebImageError(
            .connectionLost, "the server flooded the connection with frames that hold nothing, so it was closed",
            underlyingCode: code, isTransient: true)
        error.isFlood = true
        return error
    }

    /// The error if the proxy cannot be reached, found, or used.
    static func unusable(proxy: String, _ reason: String, code: Int32) -> WebImageError {
        var error = WebImageError(
            .localFault,
            "the proxy \(URLRedaction.url(proxy)) cannot be used: \(reason); start it, or name another one: --proxy URL",
            underlyingCode: code)
        error.isNetworkFault = true
        return error
    }

    private static let longHeader = "a line of the response's header is longer than 100 KB"

    private static func connectFailure(_ failure: WebImageError, _ connecting: DialledAddresses) -> WebImageError {
        var failure = failure
        if connecting.socketErrno != 0 {
            // socket(2) failed: EMFILE, ENFILE, ENOBUFS, unsupported family (an IPv6 address on a machine without).
            let code = connecting.socketErrno
            if code != EAFNOSUPPORT || connecting.dialled.isEmpty && connecting.refusal == nil {
                failure.code = code == EAFNOSUPPORT ? .cannotConnectToHost : .localFault
                failure.message = "cannot make a socket: \(errnoText(code))"
                failure.underlyingCode = code
                failure.isTransient = code == EAFNOSUPPORT
                return failure
            }
        }
        if let refusal = connecting.refusal, connecting.dialled.isEmpty {
            // Refused only if no permitted address was left to try.
            failure.code = .refused
            failure.message = refusal.why.message
            failure.reason = refusal.why.reason
            failure.refusedAddress = refusal.why.reason == .closedNetwork ? refusal.target : nil
            failure.isTransient = false
            return failure
        }
        if let noRoute = connecting.dialled.lazy.compactMap({ routeErrno(to: $0.address, port: $0.port) }).first {
            failure.code = .localFault
            failure.message = "no network: \(errnoText(noRoute))"
            failure.underlyingCode = noRoute
            failure.isNetworkFault = true
            failure.isTransient = false
        }
        return failure
    }

    /// Why this machine has no route to an IPv4 address; nil if it has one. Connecting a datagram socket consults the routing table and
    /// sends nothing. A missing IPv6 route proves nothing: half of the networks have none.
    private static func routeErrno(to address: IPAddress, port: Int) -> Int32? {
        guard !address.isIPv6 else { return nil }
        let probe = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard probe >= 0 else { return nil }
        defer { close(probe) }
        var target = sockaddr_in()
        target.sin_family = sa_family_t(AF_INET)
        target.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
        target.sin_addr.s_addr = UInt32(truncatingIfNeeded: address.low).bigEndian
        let status = withUnsafeBytes(of: &target) {
            connect(probe, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
        guard status < 0, errno == ENETUNREACH || errno == ENETDOWN else { return nil }
        return errno
    }
}
