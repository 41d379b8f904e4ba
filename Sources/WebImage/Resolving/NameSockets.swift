internal import Threading

/// The sockets of queries, in the epoll instance of the downloader's transfers; their tokens have a bit that no socket number has.
final class NameSockets: Sendable {
    struct Ready {
        var socket: Int32
        var isReadable: Bool
        var isWritable: Bool
    }

    private struct State {
        /// The sockets in epoll.
        var watched: Set<Int32> = []
        var ready: [Ready] = []
    }

    private static let mark: UInt64 = 1 << 40
    private let epoll: Epoll
    private let state = Locked(State())

    init(_ epoll: Epoll) { self.epoll = epoll }

    /// Sets the events that c-ares waits for; neither: the socket is closed.
    func watch(_ socket: Int32, reads: Bool, writes: Bool) {
        let isNew = state.withLock { state in
            reads || writes ? state.watched.insert(socket).inserted : state.watched.remove(socket) == nil
        }
        guard reads || writes else { return epoll.forget(socket) }
        epoll.watch(socket, token: Self.mark | UInt64(socket), reads: reads, writes: writes, isNew: isNew)
    }

    /// Keeps an event for ``takeReady()``; false if it is not of these sockets.
    func take(_ event: Epoll.Event) -> Bool {
        guard event.token & Self.mark != 0 else { return false }
        let socket = Int32(truncatingIfNeeded: event.token & ~Self.mark)
        state.withLock { state in
            guard state.watched.contains(socket) else { return }
            state.ready.append(
                Ready(socket: socket, isReadable: event.isReadable, isWritable: event.isWritable))
        }
        return true
    }

    func takeReady() -> [Ready] {
        state.withLock { state in
            guard !state.ready.isEmpty else { return [] }
            defer { state.ready = [] }
            return state.ready
        }
    }
}
