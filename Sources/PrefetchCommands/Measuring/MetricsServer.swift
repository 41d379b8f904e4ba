internal import CLinux
internal import Glibc
internal import Prefetch
internal import Threading

/// Answers GET and HEAD over HTTP/1.1, one request a connection: what scrapers and probes send. Whoever is slow, sends too much or opens too
/// many connections is cut off, and holds up nobody else for long.
final class MetricsServer: Sendable {
    /// What is asked.
    struct Request: Sendable {
        /// Without its query.
        var path: String
        var accept: String
    }

    /// What is answered.
    struct Response: Sendable {
        var status: String
        var contentType = "text/plain; charset=utf-8"
        var body: String
    }

    /// The most bytes of a request, the most connections, and the time in milliseconds for a request to come and for an answer to go.
    private static let (mostBytes, mostConnections, patience) = (8_192, 64, 5_000)

    /// Where it listens, with the port it was given.
    let address: ListenAddress
    private let socket: Int32
    private let acceptor = ThreadPool(threads: 1, name: "listen")
    private let pool = ThreadPool(threads: 8, name: "answer")
    private let open = Locked(0)

    /// Listens.
    /// - Throws: `configuration` where that cannot be.
    init(_ address: ListenAddress) throws(PrefetchError) {
        guard let (socket, port) = address.listen() else {
            throw PrefetchError(
                .configuration, "cannot listen on \(address.text): \(String(cString: strerror(errno)))",
                hint: "choose another port, or 0 for any that is free: --listen \(address.host):0")
        }
        self.socket = socket
        self.address = address
        bound = port
    }

    /// The port it listens on.
    let bound: Int

    deinit { close(socket) }

    /// Ends ``run(_:)``, from any thread.
    func stop() { shutdown(socket, Int32(SHUT_RDWR)) }

    /// Answers until it is told to stop.
    func run(_ answer: @escaping @Sendable (Request) async -> Response) async {
        await withDiscardingTaskGroup { group in
            let listener = socket
            while let client = await acceptor.run({ Self.accept(listener) }) {
                let hasRoom = open.withLock { open in
                    guard open < Self.mostConnections else { return false }
                    open += 1
                    return true
                }
                guard hasRoom else {
                    close(client)
                    continue
                }
                group.addTask {
                    await self.serve(client, answer)
                    self.open.withLock { $0 -= 1 }
                }
            }
        }
    }

    /// The next connection; nil where it was told to stop.
    private static func accept(_ listener: Int32) -> Int32? {
        while true {
            let client = clinux_accept(listener)
            if client >= 0 { return client }
            switch errno {
            case EINTR, ECONNABORTED: continue
            // Nothing to accept with: in a moment somebody has closed something.
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: usleep(20_000)
            default: return nil
            }
        }
    }

    private func serve(_ client: Int32, _ answer: @Sendable (Request) async -> Response) async {
        let (method, request, refusal) = await pool.run { Self.read(client) }
        guard method != nil || refusal != nil else {
            close(client)
            return
        }
        var response = Response(status: refusal ?? "200 OK", body: "\(refusal ?? "")\n")
        if let request { response = await answer(request) }
        let bytes = Array(Self.text(response, isHead: method == "HEAD").utf8)
        await pool.run {
            Self.write(bytes, to: client)
            close(client)
        }
    }

    /// A request, or what is wrong with it; nothing of both where nobody is there any more.
    private static func read(_ client: Int32) -> (method: String?, request: Request?, refusal: String?) {
        var head: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 2_048)
        let deadline = now() + patience
        while true {
            if let end = head.firstRange(of: Array("\r\n\r\n".utf8)) {
                return parse(String(decoding: head[..<end.lowerBound], as: UTF8.self))
            }
            if head.count >= mostBytes { return (nil, nil, "431 Request Header Fields Too Large") }
            guard isReady(client, Int16(POLLIN), deadline) else {
                return (nil, nil, head.isEmpty ? nil : "408 Request Timeout")
            }
            let count = recv(client, &buffer, buffer.count, 0)
            if count < 0 && (errno == EAGAIN || errno == EINTR) { continue }
            guard count > 0 else { return (nil, nil, nil) }
            head += buffer[..<count]
        }
    }

    private static func parse(_ head: String) -> (method: String?, request: Request?, refusal: String?) {
        let lines = head.split(separator: "\r\n", omittingEmptySubsequences: false)
        let words = (lines.first ?? "").split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, words[2].hasPrefix("HTTP/1."), words[1].hasPrefix("/") else {
            return (nil, nil, "400 Bad Request")
        }
        guard words[0] == "GET" || words[0] == "HEAD" else { return (nil, nil, "405 Method Not Allowed") }
        let accept = lines.dropFirst().filter { $0.lowercased().hasPrefix("accept:") }.map { $0.dropFirst(7) }
        let path = String(words[1].prefix { $0 != "?" })
        return (String(words[0]), Request(path: path, accept: accept.joined(separator: ",")), nil)
    }

    private static func text(_ response: Response, isHead: Bool) -> String {
        "HTTP/1.1 \(response.status)\r\nContent-Type: \(response.contentType)\r\nContent-Length: \(response.body.utf8.count)\r\n"
            + "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"
            + (response.status.hasPrefix("405") ? "Allow: GET, HEAD\r\n" : "") + "\r\n" + (isHead ? "" : response.body)
    }

    private static func write(_ bytes: [UInt8], to client: Int32) {
        let deadline = now() + patience
        var sent = 0
        while sent < bytes.count, isReady(client, Int16(POLLOUT), deadline) {
            let count = bytes.withUnsafeBytes {
                send(
                    client, $0.baseAddress.map { $0 + sent }, $0.count - sent, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
                )
            }
            if count < 0 && errno != EAGAIN && errno != EINTR { return }
            sent += max(0, count)
        }
    }

    private static func isReady(_ client: Int32, _ events: Int16, _ deadline: Int) -> Bool {
        while true {
            var entry = pollfd(fd: client, events: events, revents: 0)
            let left = deadline - now()
            guard left > 0 else { return false }
            let count = poll(&entry, 1, Int32(left))
            if count > 0 { return true }
            if count == 0 || errno != EINTR { return false }
        }
    }

    /// Milliseconds of a clock that nobody sets.
    private static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    }
}
