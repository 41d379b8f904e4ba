internal import CLinux
internal import Glibc
internal import Prefetch
internal import Threading

/// Serves scrapers and probes over HTTP/1.1, on one thread, which exists only while it serves. ``MetricsConnection`` is one connection.
actor MetricsServer: EpollLoop {
    struct Request: Sendable, Equatable {
        /// Without its query.
        var path: String
        var accept: String
    }

    struct Response: Sendable {
        /// HTTP status code.
        var status: Int
        var contentType = "text/plain; charset=utf-8"
        var body: String
    }

    /// A request, and the number of the connection that waits for the response.
    private struct Exchange: Sendable {
        var request: Request
        var number: UInt64
    }

    private static let listenerToken: UInt64 = 0
    private static let places = 64
    /// Accepted in one turn at most, so that the clients that are here are heard in between.
    private static let mostArrivals = 16
    /// Pause of accepting in seconds.
    private static let pause = 0.1

    nonisolated let bound: Int
    private nonisolated let exchanges: AsyncStream<Exchange>
    private nonisolated let arrivals: AsyncStream<Exchange>.Continuation
    private nonisolated let executor: ThreadExecutor
    private let epoll: Epoll
    private let names: ListenNames
    private let listener: Int32
    private var acceptAgain = Double.infinity
    /// Numbered in the order in which they came.
    private var connections: [UInt64: MetricsConnection] = [:]
    private var lastNumber: UInt64 = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Runs `body` with a listening server; closes all connections when `body` has ended.
    /// - Throws: `configuration` if it cannot listen; otherwise errors of `body`.
    static func listening(on address: ListenAddress, _ body: (MetricsServer) async throws -> Void) async throws {
        let server = try MetricsServer(address)
        do {
            try await body(server)
        } catch {
            await server.end()
            throw error
        }
        await server.end()
    }

    private init(_ address: ListenAddress) throws(PrefetchError) {
        listener = BoundSocket.open(address.host, port: address.port, reusesPort: true)
        // The backlog is more than the places: waiting connections are accepted when others are replaced.
        guard listener >= 0, listen(listener, 1024) == 0, let epoll = Epoll() else {
            let why = String(cString: strerror(errno))
            if listener >= 0 { close(listener) }
            throw PrefetchError(
                .configuration, "cannot listen on \(address.text): \(why)",
                hint: "choose another port, or 0 for any that is free: --listen \(address.host):0")
        }
        let reference = WeakReference<MetricsServer>()
        executor = ThreadExecutor(name: "metrics", epoll: epoll, loop: reference)
        (exchanges, arrivals) = AsyncStream.makeStream(of: Exchange.self)
        (self.epoll, names, bound) = (epoll, ListenNames(address), BoundSocket.port(of: listener))
        reference.set(self)
        epoll.watch(listener, token: Self.listenerToken, writes: false)
    }

    private func end() {
        close(listener)
        acceptAgain = .infinity
        connections = [:]
        executor.stop()
    }

    /// Ends ``run(_:)``, from any thread.
    nonisolated func stop() { arrivals.finish() }

    /// Responds until stopped; pending requests are dropped then.
    nonisolated func run(_ answer: @escaping @Sendable (Request) async -> Response) async {
        await withDiscardingTaskGroup { group in
            for await exchange in exchanges {
                group.addTask { await self.respond(await answer(exchange.request), to: exchange.number) }
            }
            group.cancelAll()
        }
    }

    private func respond(_ response: Response, to number: UInt64) {
        connections[number]?.respond(response)
        leave(number)
    }

    var nextTurn: Double { connections.values.reduce(acceptAgain) { min($0, $1.deadline) } }

    func turn(events count: Int) {
        for index in 0..<count {
            guard let event = epoll.event(index) else { continue }
            guard event.token != Self.listenerToken else {
                accept()
                continue
            }
            if let request = connections[event.token]?.handle(event) {
                arrivals.yield(Exchange(request: request, number: event.token))
            }
            leave(event.token)
        }
        let now = MonotonicClock.now
        for (number, connection) in connections where connection.deadline <= now {
            connection.expire()
            leave(number)
        }
        if acceptAgain <= now {
            acceptAgain = .infinity
            epoll.watch(listener, token: Self.listenerToken, writes: false)
        }
    }

    private func accept() {
        for _ in 0..<Self.mostArrivals {
            let socket = clinux_accept(listener)
            guard socket >= 0 else {
                if errno == ECONNABORTED { continue }
                guard errno != EAGAIN else { return }
                // Descriptors or memory have run out. The connection stays, and would be reported again and again.
                epoll.pause(listener)
                acceptAgain = MonotonicClock.now + Self.pause
                return
            }
            lastNumber += 1
            let connection = MetricsConnection(socket, number: lastNumber, epoll: epoll, names: names)
            // If all places are taken, it replaces the oldest one for which nothing is to be done: clients that hold connections cannot keep
            // out one that sends a request.
            if connections.count >= Self.places {
                guard let idle = connections.filter(\.value.isReplaceable).keys.min() else { continue }
                connections[idle] = nil
            }
            connections[lastNumber] = connection
        }
    }

    /// Gives up the place of a connection that is over.
    private func leave(_ number: UInt64) {
        if connections[number]?.isOver == true { connections[number] = nil }
    }
}
