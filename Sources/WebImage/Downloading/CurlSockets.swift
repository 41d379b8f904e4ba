internal import CCurl
internal import Threading

/// The sockets that curl waits for, as epoll(7) knows them.
///
/// curl lets go of a socket with every response and asks for it again with the next request over it. A socket that ``didOpen(_:)``
/// was told of therefore stays where it is meanwhile, which saves two calls of the kernel a transfer; it is taken out when something
/// happens to it that nobody waits for, as when the server closes an idle connection. Of other descriptors, those with which curl
/// waits for a name, nobody hears when they are closed and their number is used again: they are taken out at once.
final class CurlSockets: Sendable {
    private struct Entry {
        /// Whether its closing will be told.
        var isOurs = false
        /// What curl waits for: CURL_POLL_IN, CURL_POLL_OUT; 0: nothing.
        var wanted: Int32 = 0
        /// What epoll looks for; 0: it does not know the socket.
        var watched: Int32 = 0
    }

    private let epoll: Epoll
    /// By descriptor.
    private let entries = Locked<[Entry]>([])

    init(_ epoll: Epoll) { self.epoll = epoll }

    /// A connection begins.
    func didOpen(_ socket: Int32) {
        change(socket) { $0 = Entry(isOurs: true) }
    }

    /// Its number may stand for another one from now on. epoll forgets by itself what is closed.
    func didClose(_ socket: Int32) {
        change(socket) { $0 = Entry() }
    }

    /// What curl waits for from now on, in its own words (CURLMOPT_SOCKETFUNCTION).
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

    /// Whether an event of the socket is for curl; if not, there will be no other one.
    func isWanted(_ socket: Int32) -> Bool {
        change(socket) { entry in
            guard entry.wanted == 0 else { return true }
            if entry.watched != 0 { epoll.forget(socket) }
            entry.watched = 0
            return false
        }
    }

    private func change<Result>(_ socket: Int32, _ body: (inout Entry) -> Result) -> Result {
        entries.withLock { entries in
            let index = Int(socket)
            while entries.count <= index { entries.append(Entry()) }
            return body(&entries[index])
        }
    }
}
