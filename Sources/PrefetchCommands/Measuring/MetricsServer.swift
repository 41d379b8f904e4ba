internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import Prefetch

/// Serves scrapers and probes, by SwiftNIO on one thread, which exists only while it serves. ``MetricsConnection`` handles one connection.
final class MetricsServer: Sendable {
    struct Request: Sendable {
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

    /// A request, and the connection that waits for the response.
    private struct Exchange: Sendable {
        var request: Request
        var channel: any Channel
    }

    let bound: Int
    private let listener: any Channel
    private let exchanges: AsyncStream<Exchange>
    private let arrivals: AsyncStream<Exchange>.Continuation

    /// Runs `body` with a listening server; closes all connections when `body` has ended.
    /// - Throws: `configuration` if it cannot listen; otherwise errors of `body`.
    static func listening(on address: ListenAddress, _ body: (MetricsServer) async throws -> Void) async throws {
        let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        do {
            try await body(try await MetricsServer(address, loop))
        } catch {
            // Fails only for a loop that is shut down already, and the error of `body` matters.
            try? await loop.shutdownGracefully()
            throw error
        }
        try await loop.shutdownGracefully()
    }

    private init(_ address: ListenAddress, _ loop: MultiThreadedEventLoopGroup) async throws(PrefetchError) {
        let (exchanges, arrivals) = AsyncStream.makeStream(of: Exchange.self)
        (self.exchanges, self.arrivals) = (exchanges, arrivals)
        let (room, names) = (MetricsConnections(), ListenNames(address))
        let bootstrap = ServerBootstrap(group: loop)
            // More than the connection limit: waiting ones are accepted when others are replaced.
            .serverChannelOption(.backlog, value: 1024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(MetricsListener())
                }
            }
            // A client that half-closes (nc -N) still gets the response.
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try MetricsConnection.prepare(channel, room: room, names: names) {
                        arrivals.yield(Exchange(request: $0, channel: channel))
                    }
                }
            }
        do {
            listener = try await bootstrap.bind(to: SocketAddress(ipAddress: address.host, port: address.port)).get()
        } catch {
            let why = (error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(error)"
            throw PrefetchError(
                .configuration, "cannot listen on \(address.text): \(why)",
                hint: "choose another port, or 0 for any that is free: --listen \(address.host):0")
        }
        bound = listener.localAddress?.port ?? address.port
    }

    /// Ends ``run(_:)``, from any thread.
    func stop() {
        listener.close(promise: nil)
        arrivals.finish()
    }

    /// Responds until stopped; pending requests are dropped then.
    func run(_ answer: @escaping @Sendable (Request) async -> Response) async {
        await withDiscardingTaskGroup { group in
            for await exchange in exchanges {
                group.addTask {
                    let response = await answer(exchange.request)
                    // Fails if the client is gone.
                    exchange.channel.writeAndFlush(response, promise: nil)
                }
            }
            group.cancelAll()
        }
    }
}
