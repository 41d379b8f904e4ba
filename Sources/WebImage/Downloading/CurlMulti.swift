internal import CCrypto
internal import CCurl
internal import Glibc
internal import Threading

/// curl's multi handle; cleaned up with its last owner.
///
/// The loop's thread owns it together with the downloader, since it may sleep in the poll while the downloader is released.
/// Only that thread uses it, except for ``wake()``.
final class CurlMulti: Sendable {
    private let handle: Locked<SendablePointer>

    /// - Throws: `localFault` where curl has no memory or descriptors left.
    init() throws(WebImageError) {
        Self.prepareProcess
        handle = Locked(try Self.make())
    }

    deinit { curl_multi_cleanup(pointer) }

    private static func make() throws(WebImageError) -> SendablePointer {
        guard let multi = curl_multi_init() else { throw WebImageError(.localFault, "curl cannot make a multi handle") }
        _ = ccurl_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
        return SendablePointer(multi)
    }

    private var pointer: UnsafeMutableRawPointer { handle.withLock { $0 }.pointer }

    /// Closes every connection; no transfer may run. The thread goes on to sleep in a new multi handle without any.
    func closeConnections() {
        do throws(WebImageError) {
            let new = try Self.make()
            // A wake-up that only the old one knows is not lost: this is a job, and after jobs the thread looks before it sleeps.
            let old = handle.withLock { handle in
                defer { handle = new }
                return handle
            }
            curl_multi_cleanup(old.pointer)
            // What TLS keeps per thread is freed when the thread ends, but not where the process ends first: LeakSanitizer
            // reports it then (OPENSSL_thread_stop(3)).
            OPENSSL_thread_stop()
        } catch {
            // Without memory for a new one the connections stay until the downloader is released.
        }
    }

    /// Interrupts the poll; callable from any thread (curl_multi_wakeup(3)).
    func wake() { handle.withLock { _ = curl_multi_wakeup($0.pointer) } }

    /// Sleeps until a transfer can go on, at most that long.
    func poll(milliseconds: Int32) { curl_multi_poll(pointer, nil, 0, milliseconds, nil) }

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
        curl_multi_perform(pointer, &running)
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
        if !headers.contains(where: { $0.name.lowercased() == "accept" }) { lines.append("Accept:") }
        self.init(lines)
    }
}
