internal import CCurl
internal import CLinux
internal import Glibc
internal import Threading

/// The sockets that curl waits for, registered with epoll(7).
///
/// curl unregisters a socket after every response and registers it again for the next request over it. Sockets reported by ``didOpen(_:to:)``
/// therefore stay registered meanwhile, which saves two system calls per transfer; they are removed if an unwanted event occurs, such as
/// the server closing an idle connection. The closing of other descriptors (those of curl's resolver) is not reported, and their numbers
/// may be reused, so they are removed immediately.
///
/// Connections are closed and shut down under one lock, and have numbers of their own: a number of the kernel may be that of another one at any
/// time.
final class CurlSockets: Sendable {
    private struct Entry {
        /// Number of the connection, whose closing will be reported; nil: it is none.
        var connection: UInt64?
        /// The origin of its first request.
        var site = ""
        /// The events curl waits for: CURL_POLL_IN, CURL_POLL_OUT; 0: none.
        var wanted: Int32 = 0
        /// The events registered with epoll; 0: not registered.
        var watched: Int32 = 0
        /// Whether its handshake was measured.
        var isMeasured = false
    }

    private struct State {
        /// By their numbers.
        var entries: [Entry] = []
        var open = 0
        var opened: UInt64 = 0
        /// When a connection to an origin was last shut down, in seconds of CLOCK_MONOTONIC.
        var shutDown: [ByteText: Double] = [:]
        /// The shortest round trip to each origin so far, in microseconds.
        var nearest: [ByteText: Int64] = [:]
    }

    private static let (mostShutDown, mostNearest) = (1024, 16_384)

    private let epoll: Epoll
    private let state = Locked(State())

    init(_ epoll: Epoll) { self.epoll = epoll }

    /// Connections, those included that are being made.
    var openCount: Int { state.withLock { $0.open } }

    /// Of each connection that was made since the last call: by how many seconds its handshake took longer than the shortest round trip to
    /// its origin. The kernels at both ends answer at once, so that time was spent in queues of the way.
    func takeDelays() -> [Double] {
        state.withLock { state in
            var delays: [Double] = []
            for socket in state.entries.indices {
                let entry = state.entries[socket]
                guard entry.connection != nil, !entry.isMeasured else { continue }
                let trip = clinux_tcp_nearest(Int32(socket))
                guard trip >= 0 else { continue }
                state.entries[socket].isMeasured = true
                if state.nearest.count >= Self.mostNearest { state.nearest = [:] }
                let nearest = min(trip, state.nearest[ByteText(entry.site)] ?? trip)
                state.nearest[ByteText(entry.site)] = nearest
                delays.append(Double(trip - nearest) / 1e6)
            }
            return delays
        }
    }

    /// * `site`: the origin that the connection is for.
    func didOpen(_ socket: Int32, to site: String) {
        change(socket) { entry, state in
            state.opened += 1
            entry = Entry(connection: state.opened, site: site)
        }
    }

    /// Closes a socket. epoll drops closed descriptors by itself.
    func close(_ socket: Int32, by close: (Int32) -> Int32 = { Glibc.close($0) }) -> Int32 {
        change(socket) { entry, _ in
            entry = Entry()
            return close(socket)
        }
    }

    // MARK: From another thread

    /// Bytes that were taken out of each connection, by its number.
    func taken() -> [UInt64: Int64] {
        state.withLock { state in
            var taken: [UInt64: Int64] = [:]
            for (socket, entry) in state.entries.enumerated() {
                guard let connection = entry.connection else { continue }
                let bytes = clinux_tcp_taken(Int32(socket))
                if bytes >= 0 { taken[connection] = bytes }
            }
            return taken
        }
    }

    /// Ends a connection, if it is still open: the thread that uses it reads its end, and closes it.
    func shutDown(_ connection: UInt64, now: Double) {
        state.withLock { state in
            guard let socket = state.entries.firstIndex(where: { $0.connection == connection }) else { return }
            shutdown(Int32(socket), Int32(SHUT_RDWR))
            if state.shutDown.count >= Self.mostShutDown { state.shutDown = [:] }
            state.shutDown[ByteText(state.entries[socket].site)] = now
        }
    }

    /// Whether a connection to an origin was shut down after `time`, in seconds of CLOCK_MONOTONIC.
    func wasShutDown(_ site: String, after time: Double) -> Bool {
        state.withLock { state in
            guard !state.shutDown.isEmpty, let end = state.shutDown[ByteText(site)] else { return false }
            return end >= time
        }
    }

    /// Sets the events that curl waits for (CURLMOPT_SOCKETFUNCTION).
    func watch(_ socket: Int32, what: Int32) {
        let wanted = what == CURL_POLL_REMOVE ? 0 : what & (CURL_POLL_IN | CURL_POLL_OUT)
        change(socket) { entry, _ in
            entry.wanted = wanted
            if wanted == entry.watched || wanted == 0 && entry.connection != nil { return }
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
        change(socket) { entry, _ in
            guard entry.wanted == 0 else { return true }
            if entry.watched != 0 { epoll.forget(socket) }
            entry.watched = 0
            return false
        }
    }

    private func change<Result>(_ socket: Int32, _ body: (inout Entry, inout State) -> Result) -> Result {
        state.withLock { state in
            let index = Int(socket)
            while state.entries.count <= index { state.entries.append(Entry()) }
            var entry = state.entries[index]
            let wasOurs = entry.connection != nil
            defer {
                state.open += (entry.connection != nil ? 1 : 0) - (wasOurs ? 1 : 0)
                state.entries[index] = entry
            }
            return body(&entry, &state)
        }
    }
}
