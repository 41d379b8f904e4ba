/// What the origin answers, and how it misbehaves while it does.
package struct OriginResponse: Sendable {
    /// How the end of the body is told.
    package enum Framing: Sendable {
        /// `Content-Length`, as it is.
        case contentLength
        /// `Content-Length` with this text, whatever the body is: too small, negative, ten terabytes.
        case announced(String)
        /// Two `Content-Length` lines that differ.
        case announcedTwice(String, String)
        /// Chunks of at most that many bytes.
        case chunked(size: Int)
        /// HTTP/1.0 without a length: the end of the connection ends the body.
        case untilClose
    }

    /// One way to misbehave.
    package enum Fault: Sendable {
        /// Closes in order before the first byte of the answer.
        case closeBeforeHeader
        /// RST before the first byte of the answer.
        case resetBeforeHeader
        /// Says nothing until released.
        case stallBeforeHeader
        /// Closes after that many body bytes; what was announced stays announced. In a chunk: cut mid-chunk.
        case truncated(after: Int)
        /// RST after that many body bytes.
        case reset(after: Int)
        /// Says nothing more until released, after that many body bytes; then the rest comes.
        case stall(after: Int)
        /// The body in pieces of `bytes`, one every `seconds`.
        case drip(bytes: Int, seconds: Double)
        /// The header in pieces of `bytes`, one every `seconds`.
        case dripHeader(bytes: Int, seconds: Double)
        /// The body again and again in chunks, without an end.
        case endless
        /// That many more header lines.
        case headerFlood(Int)
        /// One header line of that many bytes.
        case longHeader(Int)
        /// That many `103 Early Hints` before the answer.
        case informationalFlood(Int)
        /// These bytes instead of HTTP, then the end of the connection.
        case raw([UInt8])
    }

    package var status: Int
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]
    /// Sent instead of `body` where there is one.
    package var file: OriginFile?
    package var framing = Framing.contentLength
    package var fault: Fault?
    /// Seconds before the first byte.
    package var delay = 0.0
    /// Whether the connection is closed after this answer, and the answer says so.
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

    /// A redirect to `location`, as it is written in the header.
    package static func redirect(to location: String, status: Int = 302) -> OriginResponse {
        OriginResponse(status: status, headers: [("Location", location)])
    }

    /// A status with `Retry-After` in seconds.
    package static func busy(status: Int = 503, retryAfter: Int) -> OriginResponse {
        OriginResponse(status: status, headers: [("Retry-After", "\(retryAfter)")])
    }

    /// An answer before HTTP/1.0 (HTTP/0.9): the body alone.
    package static func http09(_ body: [UInt8]) -> OriginResponse {
        OriginResponse(fault: .raw(body))
    }

    /// 200 with `Content-Encoding: gzip` nobody asked for, and a small body that inflates to `count` zeros.
    package static func gzipBomb(inflatingTo count: Int) -> OriginResponse {
        OriginResponse(
            headers: [("Content-Type", "image/jpeg"), ("Content-Encoding", "gzip")], body: GzipBomb.bytes(count))
    }

    /// The value of a header of this answer.
    func header(_ name: String) -> String? {
        headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// 304 where the request's validator is this answer's (RFC 9110, section 13).
    func revalidated(by request: OriginRequest) -> OriginResponse {
        guard status == 200, fault == nil, let entityTag = header("ETag"), request.header("If-None-Match") == entityTag
        else { return self }
        return OriginResponse(status: 304, headers: [("ETag", entityTag)], closesConnection: closesConnection)
    }
}
