internal import CCrypto
internal import CCurl
internal import Glibc
internal import Threading

/// curl's multi handle and the sockets it waits for; cleaned up when the last reference is released. Uses curl_multi_socket_action(3) and
/// epoll(7), so that a round costs only the ready sockets. curl_multi_perform(3) visits every transfer each time, and curl_multi_poll(3)
/// asks the kernel about each.
///
/// The loop's thread holds a reference of its own, because it may sleep in the poll while the downloader is released. Other threads may
/// only call ``wake()``.
final class CurlMulti: Sendable {
    /// What ended a poll.
    enum PollEnd {
        case timeout
        /// ``wake()``, which no later poll sees again.
        case wake
        /// A transfer can continue, or a resolver has answered.
        case ready
    }

    private struct Ready {
        var socket: Int32
        var mask: Int32
    }

    private let handle: Locked<SendablePointer>
    private let epoll: Epoll
    let sockets: CurlSockets
    let calls = CurlCalls()
    /// Those of the resolver, in the same poll.
    let names: NameSockets
    /// When curl wants to be called without an event, in seconds of CLOCK_MONOTONIC; infinity: never.
    private let due = Locked(Double.infinity)
    private let ready = Locked<[Ready]>([])

    /// - Throws: `localFault` if curl is out of memory or descriptors.
    init() throws(WebImageError) {
        Self.prepareProcess
        guard let epoll = Epoll() else { throw WebImageError(.localFault, "no file descriptors are left") }
        self.epoll = epoll
        sockets = CurlSockets(epoll)
        names = NameSockets(epoll)
        handle = Locked(try Self.make())
        listen()
    }

    deinit { curl_multi_cleanup(pointer) }

    private static func make() throws(WebImageError) -> SendablePointer {
        guard let multi = curl_multi_init() else { throw WebImageError(.localFault, "curl cannot make a multi handle") }
        _ = ccurl_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
        // RunningTransfers decides which are kept.
        _ = ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, 1 << 20)
        return SendablePointer(multi)
    }

    private var pointer: UnsafeMutableRawPointer { handle.withLock { $0 }.pointer }

    private func listen() {
        ccurl_multi_set_callbacks(
            pointer,
            { _, socket, what, context, _ in
                CurlMulti.from(context).sockets.watch(socket, what: what)
                return 0
            },
            { _, milliseconds, context in
                let multi = CurlMulti.from(context)
                let due = milliseconds < 0 ? .infinity : MonotonicClock.now + Double(milliseconds) / 1000
                multi.due.withLock { $0 = due }
                return 0
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> CurlMulti {
        Unmanaged<CurlMulti>.fromOpaque(context!).takeUnretainedValue()
    }

    /// Closes every connection; no transfer may be running. The thread then polls a new multi handle.
    func closeConnections() {
        do throws(WebImageError) {
            let new = try Self.make()
            let old = handle.withLock { handle in
                defer { handle = new }
                return handle
            }
            curl_multi_cleanup(old.pointer)
            due.withLock { $0 = .infinity }
            listen()
            // TLS data of the thread is freed at its end, but not if the process ends first: LeakSanitizer would report it
            // (OPENSSL_thread_stop(3)).
            OPENSSL_thread_stop()
        } catch {
            // Without memory for a new one, the connections stay open until the downloader is released.
        }
    }

    /// Interrupts the poll, from any thread; remembered until the next poll.
    func wake() { epoll.wake() }

    /// Sleeps until a transfer can continue or a resolver has answered, for at most `milliseconds`.
    @discardableResult
    func poll(milliseconds: Int32) -> PollEnd {
        let untilDue = (due.withLock { $0 } - MonotonicClock.now) * 1000
        let most = untilDue < Double(milliseconds) ? Int32(max(0, untilDue.rounded(.up))) : milliseconds
        let count = epoll.wait(milliseconds: most)
        return ready.withLock { ready in
            var end = PollEnd.timeout
            for index in 0..<count {
                guard let event = epoll.event(index) else {
                    if end == .timeout { end = .wake }
                    continue
                }
                if names.take(event) {
                    end = .ready
                    continue
                }
                let socket = Int32(truncatingIfNeeded: event.token)
                guard sockets.isWanted(socket) else { continue }
                let mask =
                    (event.isReadable ? CURL_CSELECT_IN : 0) | (event.isWritable ? CURL_CSELECT_OUT : 0)
                    | (event.isBroken ? CURL_CSELECT_ERR : 0)
                ready.append(Ready(socket: socket, mask: mask))
                end = .ready
            }
            return end
        }
    }

    func add(_ easy: CurlHandle) throws(WebImageError) {
        let status = curl_multi_add_handle(pointer, easy.pointer)
        guard status == CURLM_OK else {
            throw WebImageError(
                .localFault, "curl: \(String(cString: curl_multi_strerror(status)))", underlyingCode: status.rawValue)
        }
    }

    /// Removes the transfer, finished or not. Never call it in one of curl's callbacks.
    func remove(_ easy: CurlHandle) { curl_multi_remove_handle(pointer, easy.pointer) }

    func perform() {
        var running: Int32 = 0
        let events = ready.withLock { ready in
            defer { ready.removeAll(keepingCapacity: true) }
            return ready
        }
        // curl ignores a socket that the transfer of an earlier event has closed.
        for event in events {
            calls.run { curl_multi_socket_action(pointer, event.socket, event.mask, &running) }
        }
        // Such a call starts new transfers, which may require another one immediately.
        for _ in 0..<16 where due.withLock({ $0 }) <= MonotonicClock.now {
            due.withLock { $0 = .infinity }
            calls.run { curl_multi_socket_action(pointer, CURL_SOCKET_TIMEOUT, 0, &running) }
        }
    }

    func nextFinished() -> (handle: CurlHandle, code: Int32)? {
        var rest: Int32 = 0
        while let message = curl_multi_info_read(pointer, &rest) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = CurlHandle.from(easy: message.pointee.easy_handle)
            else {
                continue
            }
            return (easy, Int32(bitPattern: message.pointee.data.result.rawValue))
        }
        return nil
    }

    /// Initialises libcurl once per process. SSLKEYLOGFILE is hidden from it: setting a variable must not be enough to get the TLS keys.
    private static let prepareProcess: Void = {
        let name = "SSLKEYLOGFILE"
        let file = getenv(name).map { String(cString: $0) }
        if file != nil { unsetenv(name) }
        curl_global_init(Int(CURL_GLOBAL_DEFAULT))
        if let file { setenv(name, file, 1) }
    }()
}

/// State shared by a downloader's easy handles besides the multi handle's connections: TLS sessions, and optionally cookies. No lock
/// functions, because all handles are used on one thread.
final class CurlShare {
    let pointer: UnsafeMutableRawPointer
    /// Bytes of the lines that have set its cookies.
    let cookieBytes = UnsafeMutablePointer<Int>.allocate(capacity: 1)

    init(cookies: Bool) throws(WebImageError) {
        guard let share = curl_share_init() else { throw WebImageError(.localFault, "curl cannot make a share handle") }
        pointer = UnsafeMutableRawPointer(share)
        cookieBytes.initialize(to: 0)
        _ = ccurl_share(share, CURL_LOCK_DATA_SSL_SESSION)
        if cookies { _ = ccurl_share(share, CURL_LOCK_DATA_COOKIE) }
    }

    deinit {
        curl_share_cleanup(pointer)
        cookieBytes.deallocate()
    }
}

/// A string list; curl keeps the pointer, so it must outlive every handle that uses it.
final class CurlList {
    private(set) var pointer: UnsafeMutablePointer<curl_slist>?

    init() {}

    init(_ lines: [String]) {
        for line in lines { pointer = curl_slist_append(pointer, line) ?? pointer }
    }

    /// Only before curl has the list.
    /// * `line`: ends with 0.
    func append(_ line: [UInt8]) {
        line.withUnsafeBytes { bytes in
            let text = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
            pointer = curl_slist_append(pointer, text) ?? pointer
        }
    }

    deinit { curl_slist_free_all(pointer) }

    /// Request headers in curl's notation: `Name;` is a header without a value, `Name:` removes one of curl's own.
    convenience init(headers: [HTTPHeader]) {
        var lines = headers.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
        for name in ["Accept", "Accept-Encoding"]
        where !headers.contains(where: { $0.isNamed(name) }) {
            lines.append("\(name):")
        }
        self.init(lines)
    }
}
