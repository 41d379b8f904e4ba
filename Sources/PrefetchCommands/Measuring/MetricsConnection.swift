internal import Glibc
internal import Threading

/// One connection to ``MetricsServer``: one request, its response, and the end. Clients that are slow or send too much are disconnected,
/// and block no others.
final class MetricsConnection {
    private enum State {
        case reading
        case answering
        case sending
        case sent
        case over
    }

    /// Timeout of a request, and of a response, in seconds.
    private static let waitLimit = 5.0
    /// Time for the client to close after the response.
    private static let closeTimeout = 1.0

    /// In seconds of ``MonotonicClock``.
    private(set) var deadline = MonotonicClock.now + waitLimit
    private let socket: Int32
    private let number: UInt64
    private let epoll: Epoll
    private var head: MetricsHead
    private var state = State.reading
    private var hasEnded = false
    private var unsent: ArraySlice<UInt8> = []

    /// * `socket`: accepted; closed when the last reference is released.
    /// * `number`: the token of its events.
    /// * `names`: accepted hosts.
    init(_ socket: Int32, number: UInt64, epoll: Epoll, names: ListenNames) {
        (self.socket, self.number, self.epoll, head) = (socket, number, epoll, MetricsHead(names: names))
        watch()
    }

    deinit { close(socket) }

    var isOver: Bool { state == .over }

    /// Whether nobody waits for a response: none has been asked for, or it has been sent.
    var isReplaceable: Bool { state == .reading || state == .sent }

    /// Receives and sends what is possible now.
    /// - Returns: the request, when it is complete; ``respond(_:)`` has to follow.
    func handle(_ event: Epoll.Event) -> MetricsServer.Request? {
        guard !event.isBroken else {
            // It keeps its place until its response is there, so that there are never more requests in work than places.
            if state == .answering { epoll.forget(socket) } else { state = .over }
            return nil
        }
        if event.isWritable && state == .sending { send() }
        let request = event.isReadable ? receive() : nil
        watch()
        return request
    }

    func respond(_ response: MetricsServer.Response) {
        unsent = Self.bytes(of: response, withBody: !head.isOfHEAD)[...]
        (state, deadline) = (.sending, MonotonicClock.now + Self.waitLimit)
        send()
        watch()
    }

    /// Ends it at its deadline.
    func expire() {
        if state == .reading && !head.isEmpty { refuse(408) } else { state = .over }
    }

    private func refuse(_ status: Int) {
        respond(MetricsServer.Response(status: status, body: "\(status) \(Self.reasons[status] ?? "")\n"))
    }

    private func watch() {
        if state != .over { epoll.watch(socket, token: number, reads: !hasEnded, writes: state == .sending) }
    }

    private func receive() -> MetricsServer.Request? {
        var code: Int32 = 0
        let part = [UInt8](unsafeUninitializedCapacity: 16_384) { place, count in
            let received = recv(socket, place.baseAddress, place.count, 0)
            (count, code) = (max(0, received), received < 0 ? errno : 0)
        }
        guard code == 0 else {
            // The next event says that it is broken.
            if code != EAGAIN && code != EINTR && state != .answering { state = .over }
            return nil
        }
        guard !part.isEmpty else {
            // A client that half-closes (nc -N) still gets the response.
            hasEnded = true
            if state == .reading && !head.isEmpty {
                refuse(400)
            } else if state == .reading || state == .sent {
                state = .over
            }
            return nil
        }
        // Data after the head, a body or another request, is discarded.
        guard state == .reading else { return nil }
        switch head.take(part) {
        case .incomplete: return nil
        case .refused(let status):
            refuse(status)
            return nil
        case .request(let request):
            (state, deadline) = (.answering, .infinity)
            return request
        }
    }

    private func send() {
        while !unsent.isEmpty {
            let count = unsent.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count >= 0 else {
                if errno != EAGAIN && errno != EINTR { state = .over }
                return
            }
            unsent.removeFirst(count)
        }
        // Closing with unread bytes resets the connection, and may lose the response: the client closes it (RFC 9112, 9.6).
        guard !hasEnded && shutdown(socket, Int32(SHUT_WR)) == 0 else { return state = .over }
        (state, deadline) = (.sent, MonotonicClock.now + Self.closeTimeout)
    }

    private static func bytes(of response: MetricsServer.Response, withBody: Bool) -> [UInt8] {
        var lines = [
            "HTTP/1.1 \(response.status) \(reasons[response.status] ?? "")", "Content-Type: \(response.contentType)",
            "Content-Length: \(response.body.utf8.count)", "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff", "Connection: close",
        ]
        if response.status == 405 { lines.append("Allow: GET, HEAD") }
        return Array((lines.map { $0 + "\r\n" }.joined() + "\r\n" + (withBody ? response.body : "")).utf8)
    }

    private static let reasons = [
        200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
        421: "Misdirected Request", 431: "Request Header Fields Too Large", 503: "Service Unavailable",
    ]
}
