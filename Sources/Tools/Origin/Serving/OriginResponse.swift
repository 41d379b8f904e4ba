package struct OriginResponse: Sendable {
    package enum Framing: Sendable {
        case contentLength
        /// `Content-Length` with this text, regardless of the body: too small, negative, ten terabytes.
        case announced(String)
        case announcedTwice(String, String)
        case chunked(size: Int)
        /// HTTP/1.0 without a length: the body ends with the connection.
        case untilClose
    }

    package enum Fault: Sendable {
        /// Closes the connection (FIN) before the first byte of the response.
        case closeBeforeHeader
        /// RST before the first byte of the response.
        case resetBeforeHeader
        /// Sends nothing until released.
        case stallBeforeHeader
        /// Closes after that many body bytes, despite the announced length; within a chunk, mid-chunk.
        case truncated(after: Int)
        /// RST after that many body bytes.
        case reset(after: Int)
        /// Stalls after that many body bytes until released, then sends the rest.
        case stall(after: Int)
        /// The body in pieces of `bytes`, one every `seconds`.
        case drip(bytes: Int, seconds: Double)
        /// The header in pieces of `bytes`, one every `seconds`.
        case dripHeader(bytes: Int, seconds: Double)
        /// Repeats the body in chunks without end.
        case endless
        case headerFlood(Int)
        case longHeader(Int)
        /// That many `103 Early Hints` before the response.
        case informationalFlood(Int)
        case raw([UInt8])
    }

    package var status: Int
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]
    /// Sent instead of `body` if set.
    package var file: OriginFile?
    package var framing = Framing.contentLength
    package var fault: Fault?
    package var delay = 0.0
    /// Whether the connection is closed after this response, with `Connection: close`.
    package var closesConnection = false

    package init(
        status: Int = 200, headers: [(String, String)] = [], body: [UInt8] = [], framing: Framing = .contentLength,
        fault: Fault? = nil, delay: Double = 0, closesConnection: Bool = false
    ) {
        self.status = status
        self.headers = headers.map { (name: $0.0, value: $0.1) }
        self.body = body
        self.framing = framing
        self.fault = fault
        self.delay = delay
        self.closesConnection = closesConnection
    }

    /// A redirect; `location` is sent as it is.
    package static func redirect(to location: String, status: Int = 302) -> OriginResponse {
        OriginResponse(status: status, headers: [("Location", location)])
    }

    /// A status with `Retry-After` in seconds.
    package static func busy(status: Int = 503, retryAfter: Int) -> OriginResponse {
        OriginResponse(status: status, headers: [("Retry-After", "\(retryAfter)")])
    }

    package static func http09(_ body: [UInt8]) -> OriginResponse {
        OriginResponse(fault: .raw(body))
    }

    /// 200 with an unsolicited `Content-Encoding: gzip`, and a small body that inflates to `count` zeros.
    package static func gzipBomb(inflatingTo count: Int) -> OriginResponse {
        OriginResponse(
            headers: [("Content-Type", "image/jpeg"), ("Content-Encoding", "gzip")], body: GzipBomb.bytes(count))
    }

    func header(_ name: String) -> String? {
        headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// 304 if the request's validator matches (RFC 9110, section 13).
    func revalidated(by request: OriginRequest) -> OriginResponse {
        guard status == 200, fault == nil, let entityTag = header("ETag"), request.header("If-None-Match") == entityTag
        else { return self }
        return OriginResponse(status: 304, headers: [("ETag", entityTag)], closesConnection: closesConnection)
    }
}
