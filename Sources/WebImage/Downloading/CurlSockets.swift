internal import CCurl
internal import Threading

/// The sockets that curl waits for, registered with epoll(7).
///
/// curl unregisters a socket after every response and registers it again for the next request over it. Sockets reported by ``didOpen(_:)``
/// therefore stay registered meanwhile, which saves two system calls per transfer; they are removed if an unwanted event occurs, such as
/// the server closing an idle connection. The closing of other descriptors (those of curl's resolver) is not reported, and their numbers
/// may be reused, so they are removed immediately.
final class CurlSockets: Sendable {
    private struct Entry {
        /// Whether its closing will be reported.
        var isOurs = false
        /// The events curl waits for: CURL_POLL_IN, CURL_POLL_OUT; 0: none.
        var wanted: Int32 = 0
        /// The events registered with epoll; 0: not registered.
        var watched: Int32 = 0
    }

    private struct State {
        /// By their numbers.
        var entries: [Entry] = []
        var open = 0
    }

    private let epoll: Epoll
    private let state = Locked(State())

    init(_ epoll: Epoll) { self.epoll = epoll }

    /// Connections, those included that are being made.
    var openCount: Int { state.withLock { $0.open } }

    func didOpen(_ socket: Int32) {
        change(socket) { $0 = Entry(isOurs: true) }
    }

    /// The number may be reused from now on. epoll drops closed descriptors by itself.
    func didClose(_ socket: Int32) {
        change(socket) { $0 = Entry() }
    }

    /// Sets the events that curl waits for (CURLMOPT_SOCKETFUNCTION).
    func watch(_ socket: Int32, what: Int32) {
        let wanted = what == CURL_POLL_REMOVE ? 0 : what & (CURL_POLL_IN | CURL_POLL_OUT)
        change(socket) { entry in
            entry.wanted = wanted
            if wanted == entry.watched || wanted == 0 && entry.isOurs { return }
            if wanted == 0 {
                epoll.forget(socket)
            } else {
                epoll.watch(
                    socket, token: UInt64(socket), reads: wanted & CURL_POLL_IN != 0,
                    writes: wanted & CURL_POLL_OUT != 0, isNew: entry.watched == 0)
            }
            entry.watched = wanted
        }
    }

    /// Whether curl wants the socket's event; otherwise the socket is unregistered.
    func isWanted(_ socket: Int32) -> Bool {
        change(socket) { entry in
            guard entry.wanted == 0 else { return true }
            if entry.watched != 0 { epoll.forget(socket) }
            entry.watched = 0
            return false
        }
    }

    private func change<Result>(_ socket: Int32, _ body: (inout Entry) -> Result) -> Result {
        state.withLock { state in
            let index = Int(socket)
            while state.entries.count <= index { state.entries.append(Entry()) }
            let wasOurs = state.entries[index].isOurs
            defer { state.open += (state.entries[index].isOurs ? 1 : 0) - (wasOurs ? 1 : 0) }
            return body(&state.entries[index])
        }
    }
}
