internal import Glibc
internal import Threading

/// A private redis-server on a Unix socket in a temporary directory. Ended when the last reference goes.
package final class RedisServer: Sendable {
    /// Why there is no server.
    package struct StartError: Error, CustomStringConvertible {
        package let description: String
    }

    /// Where its socket, its data and its log are.
    package let directory: TemporaryDirectory
    private let child = Locked<ChildProcess?>(nil)
    private let options: [String]
    private let environment: [String: String]

    /// Starts a server and returns when it answers PING. `options` (`["--requirepass", "x"]`) are stronger than the defaults;
    /// `environment` is added to this process'; with `appendOnly` it keeps an append-only file, written out at once, so that ``restart()`` finds everything.
    package init(
        options: [String] = [], appendOnly: Bool = false, environment: [String: String] = [:]
    ) async throws {
        self.environment = environment
        // As the commands do: hiredis 0.14 writes with write(2), and here servers are killed on purpose.
        signal(SIGPIPE, SIG_IGN)
        directory = TemporaryDirectory()
        self.options =
            [
                "--port", "0", "--unixsocket", directory.path("redis.sock"), "--unixsocketperm", "700", "--save", "",
                "--appendonly", appendOnly ? "yes" : "no", "--appendfsync", "always", "--daemonize", "no", "--dir",
                directory.path,
                "--logfile", directory.path("redis.log"),
            ] + options
        try await start()
    }

    /// `unix:///tmp/…/redis.sock`
    package var url: String { "unix://\(socketPath)" }

    /// Path of the socket.
    package var socketPath: String { directory.path("redis.sock") }

    /// The pid of the running server, nil while it is down.
    package var pid: Int32? { child.withLock { $0?.pid } }

    /// The server's log.
    package var log: String { String(decoding: directory.read("redis.log") ?? [], as: UTF8.self) }

    /// Starts it again on the same data after ``stop()`` or ``kill9()``.
    package func start() async throws {
        let server = try await ChildProcess("/usr/bin/env", ["redis-server"] + options, environment: environment)
        child.withLock { $0 = server }
        for _ in 0..<5000 {
            if ping() { return }
            guard server.isRunning else { break }
            try await Task.sleep(for: .milliseconds(2))
        }
        throw StartError(description: "redis-server did not start: \(log)\(server.stdout)\(server.stderr)")
    }

    /// Ends it in order (SIGTERM: an append-only file is complete).
    package func stop() async { await end(SIGTERM) }

    /// Ends it as a crash would.
    package func kill9() async { await end(SIGKILL) }

    /// Freezes it until ``thaw()``: connections stay open and nothing answers.
    package func freeze() { child.withLock { $0 }?.signal(SIGSTOP) }

    package func thaw() { child.withLock { $0 }?.signal(SIGCONT) }

    /// Ends it in order and starts it again.
    package func restart() async throws {
        await stop()
        try await start()
    }

    private func end(_ signal: Int32) async {
        let server = child.withLock { child in
            defer { child = nil }
            return child
        }
        server?.signal(signal)
        await server?.wait()
    }

    /// PING without any client library; NOAUTH counts as an answer, LOADING does not.
    private func ping() -> Bool {
        guard let socket = connectUnix(socketPath) else { return false }
        defer { close(socket) }
        guard send(socket, "PING\r\n", 6, Int32(MSG_NOSIGNAL)) == 6 else { return false }
        var reply = [UInt8](repeating: 0, count: 64)
        let count = recv(socket, &reply, reply.count, 0)
        guard count > 0 else { return false }
        let text = String(decoding: reply[..<count], as: UTF8.self)
        return text.hasPrefix("+PONG") || text.hasPrefix("-NOAUTH")
    }
}

/// A connected, blocking Unix socket.
func connectUnix(_ path: String) -> Int32? {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return nil }
    let connected = withUnixAddress(path) { connect(descriptor, $0, $1) == 0 }
    guard connected else {
        close(descriptor)
        return nil
    }
    return descriptor
}

/// Runs `body` with the address of a Unix socket.
func withUnixAddress<Result>(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { target in
        let bytes = Array(path.utf8)
        precondition(bytes.count < target.count, "the path of a socket is too long: \(path)")
        target.copyBytes(from: bytes)
    }
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
}
