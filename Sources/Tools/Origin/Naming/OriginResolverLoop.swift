internal import CLinux
internal import DequeModule
internal import Glibc
internal import Threading

/// The thread of a ``OriginResolver``: an epoll loop that receives queries, and sends each answer when it is due.
actor OriginResolverLoop: EpollLoop {
    /// Where an answer goes.
    private enum Peer {
        case datagram(sockaddr_storage, socklen_t)
        case stream(UInt64)
    }

    private struct Stream {
        let socket: Int32
        var received: [UInt8] = []
    }

    private static let listenerToken: UInt64 = 0, datagramToken: UInt64 = 1
    private nonisolated let executor: ThreadExecutor
    private nonisolated let epoll: Epoll
    private let state: Locked<OriginResolverState>
    private var listener: Int32
    private var datagrams: Int32
    private var streams: [UInt64: Stream] = [:]
    private var nextToken: UInt64 = 2
    /// Answers by the time they are due.
    private var due: Deque<(time: Double, peer: Peer, message: [UInt8])> = []
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(listener: Int32, datagrams: Int32, state: Locked<OriginResolverState>) throws(OriginError) {
        guard let epoll = Epoll() else {
            close(listener)
            close(datagrams)
            throw OriginError("cannot make an epoll instance")
        }
        let reference = WeakReference<OriginResolverLoop>()
        executor = ThreadExecutor(name: "names", epoll: epoll, loop: reference)
        self.epoll = epoll
        self.state = state
        self.listener = listener
        self.datagrams = datagrams
        epoll.watch(listener, token: Self.listenerToken, writes: false)
        epoll.watch(datagrams, token: Self.datagramToken, writes: false)
        reference.set(self)
    }

    deinit {
        for socket in [listener, datagrams] where socket >= 0 { close(socket) }
        executor.stop()
    }

    func shutDown() {
        for socket in [listener, datagrams] where socket >= 0 { close(socket) }
        (listener, datagrams) = (-1, -1)
        for token in Array(streams.keys) { end(token) }
        due = []
    }

    var nextTurn: Double { due.first?.time ?? .infinity }

    func turn(events count: Int) {
        for index in 0..<count {
            guard let event = epoll.event(index) else { continue }
            switch event.token {
            case Self.listenerToken: accept()
            case Self.datagramToken: receiveDatagrams()
            default: receive(event.token)
            }
        }
        let now = MonotonicClock.now
        while let next = due.first, next.time <= now {
            due.removeFirst()
            send(next.message, to: next.peer)
        }
    }

    private func receiveDatagrams() {
        while datagrams >= 0 {
            var peer = sockaddr_storage()
            var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let count = withUnsafeMutableBytes(of: &peer) { place in
                recvfrom(
                    datagrams, &buffer, buffer.count, Int32(MSG_DONTWAIT),
                    place.baseAddress!.assumingMemoryBound(to: sockaddr.self), &size)
            }
            guard count > 0 else { return }
            answer(Array(buffer[..<count]), isOverTCP: false, to: .datagram(peer, size))
        }
    }

    private func accept() {
        while listener >= 0 {
            let socket = clinux_accept(listener)
            guard socket >= 0 else { return }
            streams[nextToken] = Stream(socket: socket)
            epoll.watch(socket, token: nextToken, writes: false)
            nextToken += 1
        }
    }

    private func receive(_ token: UInt64) {
        guard let socket = streams[token]?.socket else { return }
        let count = recv(socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        guard count > 0 else {
            if count == 0 || errno != EAGAIN { end(token) }
            return
        }
        streams[token]?.received += buffer[..<count]
        // Each message has its length before it (RFC 1035, section 4.2.2).
        while let received = streams[token]?.received, received.count >= 2 {
            let length = Int(received[0]) << 8 | Int(received[1])
            guard received.count >= 2 + length else { return }
            streams[token]?.received.removeFirst(2 + length)
            answer(Array(received[2..<2 + length]), isOverTCP: true, to: .stream(token))
        }
    }

    private func end(_ token: UInt64) {
        guard let stream = streams.removeValue(forKey: token) else { return }
        close(stream.socket)
    }

    private func answer(_ message: [UInt8], isOverTCP: Bool, to peer: Peer) {
        guard var question = NameQuestion(message: message) else { return }
        question.isOverTCP = isOverTCP
        let now = MonotonicClock.now
        let (verdict, zone, ready) = state.withLock { $0.begin(&question, now: now) }
        for resume in ready { resume() }
        var answer: NameAnswer
        var delay: Double
        switch verdict {
        case .drop: return
        case .fail(let after): (answer, delay) = (NameAnswer(.serverFailure), after)
        case .answer(let after): (answer, delay) = (zone(question), after)
        }
        guard !answer.isSilent else { return }
        delay += answer.delay
        let bytes = answer.message(to: question)
        guard delay > 0 else { return send(bytes, to: peer) }
        let time = now + delay
        let place = due.lastIndex { $0.time <= time }.map { $0 + 1 } ?? 0
        due.insert((time, peer, bytes), at: place)
    }

    private func send(_ message: [UInt8], to peer: Peer) {
        switch peer {
        case .datagram(var address, let size):
            _ = withUnsafeBytes(of: &address) { place in
                sendto(
                    datagrams, message, message.count, 0,
                    place.baseAddress!.assumingMemoryBound(to: sockaddr.self), size)
            }
        case .stream(let token):
            guard let socket = streams[token]?.socket else { return }
            let framed = [UInt8(message.count >> 8), UInt8(truncatingIfNeeded: message.count)] + message
            _ = Glibc.send(socket, framed, framed.count, Int32(MSG_NOSIGNAL))
        }
    }
}

/// A TCP listener and a UDP socket on one port.
func listenForQueries(address: String, port: Int) throws(OriginError) -> (listener: Int32, datagrams: Int32, port: Int)
{
    // A port that is free for TCP may be taken for UDP: then another one is tried.
    for turn in 0..<16 {
        let (listener, bound) = try listenOn(address: address, port: port)
        do throws(OriginError) {
            let (datagrams, _) = try bindTo(address: address, port: bound, kind: SOCK_DGRAM)
            var size: Int32 = 4 << 20
            setsockopt(datagrams, SOL_SOCKET, SO_RCVBUF, &size, 4)
            return (listener, datagrams, bound)
        } catch {
            close(listener)
            if port != 0 || turn == 15 { throw error }
        }
    }
    throw OriginError("no free port")
}
