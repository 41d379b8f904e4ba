internal import CLinux
internal import Glibc
internal import Threading

/// The server's single thread: an epoll loop that accepts, reads, responds and schedules delayed responses.
actor OriginLoop: EpollLoop {
    private static let listenerToken: UInt64 = 0
    private nonisolated let executor: ThreadExecutor
    private nonisolated let epoll: Epoll
    private let state: Locked<OriginState>
    private var listener: Int32
    private var connections: [UInt64: OriginConnection] = [:]
    private var nextID = 0
    private var held: Set<UInt64> = []
    private var seenReleases = 0
    private var sleeping: Set<UInt64> = []
    private var nextWake = Double.infinity
    private var acceptAgain: Double?
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(listener: Int32, state: Locked<OriginState>) throws(OriginError) {
        let epoll: Epoll
        do throws(OriginError) {
            guard let made = Epoll() else { throw OriginError("cannot make an epoll instance") }
            epoll = made
        } catch {
            close(listener)
            throw error
        }
        let reference = WeakReference<OriginLoop>()
        executor = ThreadExecutor(name: "origin", epoll: epoll, loop: reference)
        self.epoll = epoll
        self.state = state
        self.listener = listener
        epoll.watch(listener, token: Self.listenerToken, writes: false)
        reference.set(self)
    }

    deinit {
        if listener >= 0 { close(listener) }
        executor.stop()
    }

    nonisolated func wake() { epoll.wake() }

    func shutDown() {
        if listener >= 0 { close(listener) }
        listener = -1
        for id in Array(connections.keys) { end(id) }
    }

    var nextTurn: Double { min(nextWake, acceptAgain ?? .infinity) }

    func turn(events count: Int) {
        for index in 0..<count {
            guard let event = epoll.event(index) else { continue }
            if event.token == Self.listenerToken {
                accept()
            } else if let connection = connections[event.token] {
                if event.isReadable { receive(connection) }
                if event.isWritable && connection.watchesWrites && connections[event.token] != nil {
                    work(on: connection)
                }
            }
        }
        resumeReleased()
        let now = MonotonicClock.now
        if let again = acceptAgain, now >= again {
            acceptAgain = nil
            epoll.watch(listener, token: Self.listenerToken, writes: false)
        }
        if now >= nextWake { resumeWaiting(now) }
    }

    private func accept() {
        while listener >= 0 {
            let socket = clinux_accept(listener)
            guard socket >= 0 else {
                if errno == EMFILE || errno == ENFILE {
                    epoll.pause(listener)
                    acceptAgain = MonotonicClock.now + 0.01
                }
                return
            }
            nextID += 1
            connections[UInt64(nextID)] = OriginConnection(id: nextID, socket: socket)
            state.withLock {
                $0.connections += 1
                $0.openConnections += 1
            }
            epoll.watch(socket, token: UInt64(nextID), writes: false)
        }
    }

    private func receive(_ connection: OriginConnection) {
        guard connection.receive(into: &buffer) else { return end(UInt64(connection.id)) }
        if connection.answering == nil { answerNext(on: connection) }
    }

    private func answerNext(on connection: OriginConnection) {
        while connection.answering == nil, let head = connection.nextRequest() {
            guard var request = OriginRequest.parse(head[...]) else { return end(UInt64(connection.id)) }
            request.connection = connection.id
            request.time = MonotonicClock.now
            let (handler, ready) = state.withLock { $0.begin(&request) }
            for resume in ready { resume() }
            connection.answer(request.path)
            var response = handler?(request) ?? OriginResponse(status: 404)
            response = response.revalidated(by: request)
            if request.header("Connection")?.lowercased() == "close" { response.closesConnection = true }
            connection.begin(response.steps(for: request))
            work(on: connection)
        }
    }

    private func work(on connection: OriginConnection) {
        let id = UInt64(connection.id)
        while true {
            let pause = connection.advance()
            if case .blocked = pause {
                if !connection.watchesWrites { epoll.watch(connection.socket, token: id, writes: true) }
                connection.setWatchesWrites(true)
                return
            }
            if connection.watchesWrites {
                epoll.watch(connection.socket, token: id, writes: false)
                connection.setWatchesWrites(false)
            }
            switch pause {
            case .blocked: return
            case .done:
                connection.answer(nil)
                state.withLock { $0.active -= 1 }
                return answerNext(on: connection)
            case .waiting(let seconds):
                let time = MonotonicClock.now + seconds
                connection.wait(until: time)
                sleeping.insert(id)
                nextWake = min(nextWake, time)
                return
            case .held:
                let path = connection.answering ?? ""
                if state.withLock({ $0.released.contains(path) }) {
                    connection.release()
                } else {
                    held.insert(id)
                    return
                }
            case .ended: return end(id)
            }
        }
    }

    private func resumeReleased() {
        guard !held.isEmpty else { return }
        let (releases, released) = state.withLock { ($0.releases, $0.released) }
        guard releases != seenReleases else { return }
        seenReleases = releases
        for id in held {
            guard let connection = connections[id], released.contains(connection.answering ?? "") else { continue }
            held.remove(id)
            connection.release()
            work(on: connection)
        }
    }

    private func resumeWaiting(_ now: Double) {
        nextWake = .infinity
        for id in sleeping {
            guard let connection = connections[id], let time = connection.wakeTime else { continue }
            guard time <= now else {
                nextWake = min(nextWake, time)
                continue
            }
            sleeping.remove(id)
            connection.wait(until: nil)
            work(on: connection)
        }
    }

    private func end(_ id: UInt64) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        held.remove(id)
        sleeping.remove(id)
        let wasAnswering = connection.answering != nil
        state.withLock {
            if wasAnswering { $0.active -= 1 }
            $0.openConnections -= 1
        }
    }
}
