internal import CCrypto
internal import CCurl
internal import Glibc
internal import Threading

/// curl's multi handle and the sockets it waits for; cleaned up with its last owner.
///
/// By curl_multi_socket_action(3) and epoll(7): the cost of a round is that of the sockets that are ready. curl_multi_perform(3) looks
/// at every transfer each time, and curl_multi_poll(3) asks the kernel about each.
///
/// The loop's thread owns it together with the downloader, since it may sleep in the poll while the downloader is released.
/// Only that thread uses it, except for ``wake()``.
final class CurlMulti: Sendable {
    private struct Ready {
        var socket: Int32
        var mask: Int32
    }

    private let handle: Locked<SendablePointer>
    private let epoll: Epoll
    /// Those it waits for.
    let sockets: CurlSockets
    /// When curl wants to be called without an event, CLOCK_MONOTONIC in seconds; infinity: never.
    private let due = Locked(Double.infinity)
    /// Sockets with an event since the last round.
    private let ready = Locked<[Ready]>([])

    /// - Throws: `localFault` where curl has no memory or descriptors left.
    init() throws(WebImageError) {
        Self.prepareProcess
        guard let epoll = Epoll() else { throw WebImageError(.localFault, "no file descriptors are left") }
        self.epoll = epoll
        sockets = CurlSockets(epoll)
        handle = Locked(try Self.make())
        listen()
    }

    deinit { curl_multi_cleanup(pointer) }

    private static func make() throws(WebImageError) -> SendablePointer {
        guard let multi = curl_multi_init() else { throw WebImageError(.localFault, "curl cannot make a multi handle") }
        _ = ccurl_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
        return SendablePointer(multi)
    }

    private var pointer: UnsafeMutableRawPointer { handle.withLock { $0 }.pointer }

    /// Has curl say which sockets it waits for, and when it wants to be called.
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

    /// Closes every connection; no transfer may run. The thread goes on to sleep in a new multi handle without any.
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
            // What TLS keeps per thread is freed when the thread ends, but not where the process ends first: LeakSanitizer
            // reports it then (OPENSSL_thread_stop(3)).
            OPENSSL_thread_stop()
        } catch {
            // Without memory for a new one the connections stay until the downloader is released.
        }
    }

    /// Interrupts the poll; callable from any thread. Remembered until the next one where there is none.
    func wake() { epoll.wake() }

    /// Sleeps until a transfer can go on, at most that long.
    func poll(milliseconds: Int32) {
        let untilDue = (due.withLock { $0 } - MonotonicClock.now) * 1000
        let most = untilDue < Double(milliseconds) ? Int32(max(0, untilDue.rounded(.up))) : milliseconds
        let count = epoll.wait(milliseconds: most)
        ready.withLock { ready in
            for index in 0..<count {
                guard let event = epoll.event(index) else { continue }
                let socket = Int32(truncatingIfNeeded: event.token)
                guard sockets.isWanted(socket) else { continue }
                let mask =
                    (event.isReadable ? CURL_CSELECT_IN : 0) | (event.isWritable ? CURL_CSELECT_OUT : 0)
                    | (event.isBroken ? CURL_CSELECT_ERR : 0)
                ready.append(Ready(socket: socket, mask: mask))
            }
        }
    }

    /// Starts the transfer that the handle is set up for.
    func add(_ easy: CurlHandle) throws(WebImageError) {
        let status = curl_multi_add_handle(pointer, easy.pointer)
        guard status == CURLM_OK else {
            throw WebImageError(
                .localFault, "curl: \(String(cString: curl_multi_strerror(status)))", underlyingCode: status.rawValue)
        }
    }

    /// Ends the transfer, finished or not. Never in one of curl's callbacks.
    func remove(_ easy: CurlHandle) { curl_multi_remove_handle(pointer, easy.pointer) }

    /// Goes on with every transfer that can.
    func perform() {
        var running: Int32 = 0
        let events = ready.withLock { ready in
            defer { ready.removeAll(keepingCapacity: true) }
            return ready
        }
        // A socket that an earlier event's transfer closed is one curl does not know any more: that call does nothing.
        for event in events { curl_multi_socket_action(pointer, event.socket, event.mask, &running) }
        // New transfers begin in such a call, and may want another one at once.
        for _ in 0..<16 where due.withLock({ $0 }) <= MonotonicClock.now {
            due.withLock { $0 = .infinity }
            curl_multi_socket_action(pointer, CURL_SOCKET_TIMEOUT, 0, &running)
        }
    }

    /// A transfer that has ended since the last look, with its CURLcode.
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

    /// How many connections are kept, used ones included.
    func setConnectionLimit(_ count: Int) {
        _ = ccurl_multi_set_long(pointer, CURLMOPT_MAXCONNECTS, count)
    }

    /// libcurl's own start, once in a process. SSLKEYLOGFILE is hidden from it: who can set a variable must not get the keys.
    private static let prepareProcess: Void = {
        let name = "SSLKEYLOGFILE"
        let file = getenv(name).map { String(cString: $0) }
        if file != nil { unsetenv(name) }
        curl_global_init(Int(CURL_GLOBAL_DEFAULT))
        if let file { setenv(name, file, 1) }
    }()
}

/// What the easy handles of a downloader share beside the multi handle's connections: TLS sessions, and cookies where asked for.
///
/// Without lock functions, since all handles are used on one thread.
final class CurlShare {
    let pointer: UnsafeMutableRawPointer

    init(cookies: Bool) throws(WebImageError) {
        guard let share = curl_share_init() else { throw WebImageError(.localFault, "curl cannot make a share handle") }
        pointer = UnsafeMutableRawPointer(share)
        _ = ccurl_share(share, CURL_LOCK_DATA_SSL_SESSION)
        if cookies { _ = ccurl_share(share, CURL_LOCK_DATA_COOKIE) }
    }

    deinit { curl_share_cleanup(pointer) }
}

/// A list of lines; curl keeps the pointer, so it lives as long as a handle that has it.
final class CurlList {
    let pointer: UnsafeMutablePointer<curl_slist>?

    init(_ lines: [String]) {
        var list: UnsafeMutablePointer<curl_slist>?
        for line in lines { list = curl_slist_append(list, line) ?? list }
        pointer = list
    }

    deinit { curl_slist_free_all(pointer) }

    /// Request headers in curl's notation: `Name;` is a header without a value, `Name:` removes one of curl's own.
    convenience init(headers: [HTTPHeader]) {
        var lines = headers.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
        for name in ["Accept", "Accept-Encoding"]
        where !headers.contains(where: { $0.name.lowercased() == name.lowercased() }) {
            lines.append("\(name):")
        }
        self.init(lines)
    }
}
