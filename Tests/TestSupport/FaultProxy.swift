internal import Glibc
internal import Threading

/// Stands between a client and a Unix socket and misbehaves on demand.
package final class FaultProxy: Sendable {
    /// What happens to a message that comes by.
    package enum Fault: Sendable {
        /// The connection ends instead of the request being passed on.
        case cutBeforeRequest
        /// The request is passed on, then the connection ends instead of the reply.
        case cutBeforeReply
        /// The connection ends in the middle of the reply.
        case cutMidReply
        /// The reply comes late.
        case delayReply(milliseconds: Int)
        /// The reply never comes; the connection stays open.
        case swallowReply
        /// Something comes that is not the server's protocol.
        case garble
        /// A request that has this text is not passed on, and gets this reply.
        case answer(containing: String, reply: String)
        /// A request that has this text is passed on, and what comes back for it is replaced by this reply.
        case replaceReply(containing: String, reply: String)
    }

    private struct State {
        var fault: Fault?
        var times = 0
        var triggered = 0
        /// So many messages that would meet the fault are passed on first.
        var skipped = 0
        /// What takes the place of the next reply.
        var replacement: String?
        /// Every so many messages of the fault's direction meet it, instead of the next ones; 0 = no.
        var every = 0, passed = 0
        var sockets: [Int32] = []
        var stopped = false
    }

    /// Where clients connect.
    package let socketPath: String
    private let directory = TemporaryDirectory()
    private let target: String
    private let listener: Int32
    private let state: Locked<State>

    /// Listens in front of the Unix socket `target`.
    package init(target: String) {
        signal(SIGPIPE, SIG_IGN)
        self.target = target
        let path = directory.path("proxy.sock")
        socketPath = path
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        let bound = withUnixAddress(path) { bind(listener, $0, $1) == 0 } && listen(listener, 64) == 0
        precondition(bound, "cannot listen on \(path): \(String(cString: strerror(errno)))")
        self.listener = listener
        let state = Locked(State())
        self.state = state
        Self.inThread { Self.accept(on: listener, target: target, state: state) }
    }

    deinit {
        let sockets = state.withLock { state in
            state.stopped = true
            return state.sockets
        }
        shutdown(listener, Int32(SHUT_RDWR))
        for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) }
    }

    /// `unix:///tmp/…/proxy.sock`
    package var url: String { "unix://\(socketPath)" }

    /// From now on the next `times` messages of that direction meet the fault, but for the first `skipped` of them. 0 times: none does.
    package func arm(_ fault: Fault, times: Int = 1, skipping skipped: Int = 0) {
        state.withLock {
            $0.fault = fault
            $0.times = times
            $0.skipped = skipped
        }
    }

    /// From now on every `every`th message of that direction meets the fault; 0 ends it.
    package func arm(_ fault: Fault, every: Int) {
        state.withLock {
            $0.fault = fault
            $0.times = 0
            ($0.every, $0.passed) = (every, 0)
        }
    }

    /// How many messages have met a fault.
    package var triggered: Int { state.withLock { $0.triggered } }

    private static func inThread(_ body: @escaping @Sendable () -> Void) {
        let pool = ThreadPool(threads: 1, name: "proxy")
        Task { await pool.run { body() } }
    }

    private static func accept(on listener: Int32, target: String, state: Locked<State>) {
        defer { close(listener) }
        while true {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { return }
            guard let server = connectUnix(target) else {
                close(client)
                continue
            }
            let stopped = state.withLock { state in
                state.sockets += [client, server]
                return state.stopped
            }
            if stopped { end([client, server]) }
            // Each direction has its thread; the second to leave closes both descriptors.
            let left = Locked(2)
            for (from, to, isReply) in [(client, server, false), (server, client, true)] {
                inThread {
                    pump(from: from, to: to, isReply: isReply, state: state)
                    end([from, to])
                    let isLast = left.withLock { left in
                        left -= 1
                        return left == 0
                    }
                    guard isLast else { return }
                    state.withLock { $0.sockets.removeAll { $0 == from || $0 == to } }
                    close(from)
                    close(to)
                }
            }
        }
    }

    private static func end(_ sockets: [Int32]) {
        for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) }
    }

    private static func pump(from: Int32, to: Int32, isReply: Bool, state: Locked<State>) {
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = recv(from, &buffer, buffer.count, 0)
            guard count > 0 else { return }
            var length = count
            if isReply, let reply = takeReplacement(state) {
                _ = Array(reply.utf8).withUnsafeBytes { send(to, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                continue
            }
            let fault = take(buffer[..<count], isReply: isReply, state: state)
            switch fault {
            case nil, .replaceReply: break
            case .cutBeforeRequest, .cutBeforeReply: return
            case .cutMidReply: length = max(1, count / 2)
            case .delayReply(let milliseconds): usleep(UInt32(milliseconds) * 1000)
            case .swallowReply: continue
            case .answer(_, let reply):
                _ = Array(reply.utf8).withUnsafeBytes { send(from, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                continue
            case .garble:
                let text = Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
                length = min(text.count, buffer.count)
                buffer.replaceSubrange(0..<length, with: text)
            }
            var sent = 0
            while sent < length {
                let step = buffer.withUnsafeBytes {
                    send(to, $0.baseAddress! + sent, length - sent, Int32(MSG_NOSIGNAL))
                }
                guard step > 0 else { return }
                sent += step
            }
            if case .cutMidReply = fault { return }
        }
    }

    private static func takeReplacement(_ state: Locked<State>) -> String? {
        state.withLock { state in
            defer { state.replacement = nil }
            return state.replacement
        }
    }

    private static func take(_ message: ArraySlice<UInt8>, isReply: Bool, state: Locked<State>) -> Fault? {
        state.withLock { state in
            guard state.times > 0 || state.every > 0, let fault = state.fault else { return nil }
            switch fault {
            case .cutBeforeRequest: guard !isReply else { return nil }
            case .answer(let text, _), .replaceReply(let text, _):
                guard !isReply, String(decoding: message, as: UTF8.self).contains(text) else { return nil }
            default: guard isReply else { return nil }
            }
            guard state.skipped == 0 else {
                state.skipped -= 1
                return nil
            }
            if state.every > 0 {
                state.passed += 1
                guard state.passed.isMultiple(of: state.every) else { return nil }
            } else {
                state.times -= 1
            }
            state.triggered += 1
            if case .replaceReply(_, let reply) = fault { state.replacement = reply }
            return fault
        }
    }
}
