internal import Glibc
internal import Threading

/// An HTTP/1.1 server that can misbehave byte by byte, for tests, the demo and the benchmark. One thread serves thousands of connections.
/// The server ends when it is released or stopped with ``stop()``.
package final class OriginServer: Sendable {
    package let address: String
    package let port: Int
    private let state = Locked(OriginState())
    private let loop: OriginLoop

    /// Starts listening, and the thread.
    /// - Parameters:
    ///   - address: an IPv4 or IPv6 address of this machine.
    ///   - port: 0 for any free one.
    /// - Throws: ``OriginError`` if the address is not available.
    package init(address: String = "127.0.0.1", port: Int = 0) throws(OriginError) {
        let (socket, bound) = try listenOn(address: address, port: port)
        self.address = address
        self.port = bound
        loop = try OriginLoop(listener: socket, state: state)
    }

    /// Serves a folder's files under their names. `change` may replace a response.
    /// - Throws: ``OriginError`` if the folder or the address cannot be used.
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

    package func url(_ path: String) -> String {
        "http://\(address.contains(":") ? "[\(address)]" : address):\(port)\(path)"
    }

    // MARK: Responses

    package func route(_ path: String, _ response: OriginResponse) {
        route(path) { _ in response }
    }

    package func route(_ path: String, sequence: [OriginResponse]) {
        route(path) { sequence.isEmpty ? OriginResponse(status: 404) : sequence[min($0.number, sequence.count) - 1] }
    }

    /// Sets a function that answers a path; called on the server's thread, so it must not block.
    package func route(_ path: String, handler: @escaping @Sendable (OriginRequest) -> OriginResponse) {
        state.withLock { $0.routes[path] = handler }
    }

    /// Answers every path without a route; by default 404.
    package func setFallback(_ handler: @escaping @Sendable (OriginRequest) -> OriginResponse) {
        state.withLock { $0.fallback = handler }
    }

    /// Releases current and future stalled responses of a path.
    package func release(_ path: String) {
        state.withLock {
            $0.released.insert(path)
            $0.releases += 1
        }
        loop.wake()
    }

    // MARK: Statistics

    /// Whether ``requests`` is recorded; default true. A benchmark's origin turns it off.
    package var keepsLog: Bool {
        get { state.withLock { $0.keepsLog } }
        set { state.withLock { $0.keepsLog = newValue } }
    }

    package var requests: [OriginRequest] { state.withLock { $0.log } }

    package func requestCount(_ path: String? = nil) -> Int { state.withLock { $0.count(of: path) } }

    package var maxConcurrentRequestsSeen: Int { state.withLock { $0.maxActive } }

    package var currentRequestCount: Int { state.withLock { $0.active } }

    package var connectionCount: Int { state.withLock { $0.connections } }

    package var openConnectionCount: Int { state.withLock { $0.openConnections } }

    /// Returns after that many requests for a path, or for all. Not cancellable.
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
