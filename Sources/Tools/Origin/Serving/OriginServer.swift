internal import Glibc
internal import Threading

/// An HTTP/1.1 server on the loopback interface that can misbehave byte by byte, for tests, the demo and the benchmark.
///
/// One thread serves thousands of connections. The server ends when it is released, or at ``stop()``.
package final class OriginServer: Sendable {
    /// The address it listens on, as text.
    package let address: String
    /// The port it listens on.
    package let port: Int
    private let state = Locked(OriginState())
    private let loop: OriginLoop

    /// Listens and starts the thread.
    /// - Parameters:
    ///   - address: an IPv4 or IPv6 address of this machine.
    ///   - port: 0 for any free one.
    /// - Throws: ``OriginError`` where the address cannot be used.
    package init(address: String = "127.0.0.1", port: Int = 0) throws(OriginError) {
        let (socket, bound) = try listenOn(address: address, port: port)
        self.address = address
        self.port = bound
        loop = try OriginLoop(listener: socket, state: state)
    }

    /// A server of a folder's files under their names. `change` may make another answer of that.
    /// - Throws: ``OriginError`` where the folder or the address cannot be used.
    package static func serve(
        directory: String, address: String = "127.0.0.1", port: Int = 0,
        change: @escaping @Sendable (OriginRequest, OriginResponse) -> OriginResponse = { $1 }
    ) throws(OriginError) -> OriginServer {
        guard let folder = OriginFolder(path: directory) else { throw OriginError("cannot open \(directory)") }
        let server = try OriginServer(address: address, port: port)
        server.setFallback { change($0, folder.response(to: $0)) }
        return server
    }

    /// Closes every socket; the thread ends when the server is released.
    package func stop() async { await loop.shutDown() }

    /// `http://address:port` and the path.
    package func url(_ path: String) -> String {
        "http://\(address.contains(":") ? "[\(address)]" : address):\(port)\(path)"
    }

    // MARK: Answers

    /// Answers a path, query included, always the same.
    package func route(_ path: String, _ response: OriginResponse) {
        route(path) { _ in response }
    }

    /// Answers a path one after the other; the last one stays.
    package func route(_ path: String, sequence: [OriginResponse]) {
        route(path) { sequence.isEmpty ? OriginResponse(status: 404) : sequence[min($0.number, sequence.count) - 1] }
    }

    /// Answers a path by a function of the request, called on the server's thread: it must not block.
    package func route(_ path: String, handler: @escaping @Sendable (OriginRequest) -> OriginResponse) {
        state.withLock { $0.routes[path] = handler }
    }

    /// Answers every path without a route; 404 otherwise.
    package func setFallback(_ handler: @escaping @Sendable (OriginRequest) -> OriginResponse) {
        state.withLock { $0.fallback = handler }
    }

    /// Lets every answer to the path that stalls go on, those to come included.
    package func release(_ path: String) {
        state.withLock {
            $0.released.insert(path)
            $0.releases += 1
        }
        loop.wake()
    }

    // MARK: What was seen

    /// Whether ``requests`` is kept, true by default: a benchmark's origin turns it off.
    package var keepsLog: Bool {
        get { state.withLock { $0.keepsLog } }
        set { state.withLock { $0.keepsLog = newValue } }
    }

    /// Every request, in order.
    package var requests: [OriginRequest] { state.withLock { $0.log } }

    /// The number of requests for a path, or for all.
    package func requestCount(_ path: String? = nil) -> Int { state.withLock { $0.count(of: path) } }

    /// The most requests that were being answered at the same time.
    package var maxConcurrentRequestsSeen: Int { state.withLock { $0.maxActive } }

    /// Requests being answered now.
    package var currentRequestCount: Int { state.withLock { $0.active } }

    /// The number of connections accepted so far.
    package var connectionCount: Int { state.withLock { $0.connections } }

    /// Connections open now.
    package var openConnectionCount: Int { state.withLock { $0.openConnections } }

    /// Returns once that many requests for a path, or for all, have come. Not cancellable.
    package func waitForRequests(_ count: Int, to path: String? = nil) async {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            let isThere = state.withLock { state in
                if state.count(of: path) >= count { return true }
                state.waiters.append(.init(path: path, count: count) { continuation.resume() })
                return false
            }
            if isThere { continuation.resume() }
        }
    }
}
