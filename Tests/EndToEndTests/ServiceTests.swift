import Glibc
import Prefetch
import Redis
import TestSupport
import Testing

/// A worker under a service manager, which this test is.
@Suite("A worker as a service", .timeLimit(.minutes(5)))
struct ServiceTests {
    private func worker(
        _ redis: String, _ folder: TemporaryDirectory, _ socket: NotifySocket
    ) async throws -> ChildProcess {
        try await ChildProcess(
            builtProduct("prefetch-worker"), ["--redis", redis, "--cache", folder.path("cache")],
            environment: ["NOTIFY_SOCKET": socket.path, "WATCHDOG_USEC": "100000"])
    }

    /// Collects messages until one begins so.
    private func collect(_ beginning: String, _ socket: NotifySocket, _ seen: inout [String]) async throws {
        while !seen.contains(where: { $0.hasPrefix(beginning) }) {
            seen += socket.all()
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    @Test("It is ready when it is registered, sends watchdog notices, and says that it stops")
    func life() async throws {
        let (remote, socket) = (try await RemoteBatch(), NotifySocket())
        let worker = try await worker(remote.redis.url, remote.folder, socket)
        var seen: [String] = []
        try await collect("READY=1", socket, &seen)
        #expect(try await remote.queue.workers.names().count == 1)
        let ready = try #require(seen.first { $0.hasPrefix("READY=1") })
        #expect(ready.contains("\nSTATUS=worker ") && ready.hasSuffix(":\(worker.pid) is ready"))
        seen.removeAll()
        try await collect("WATCHDOG=1", socket, &seen)
        seen.removeAll()
        worker.signal(SIGTERM)
        #expect(await worker.wait() == .exited(0))
        seen += socket.all()
        #expect(seen.contains { $0.hasPrefix("STOPPING=1\nSTATUS=") })
        #expect(!seen.contains { $0.hasPrefix("READY=1") })
    }

    @Test("It is ready too where it waits for Redis, says so, sends watchdog notices, and says when Redis is there")
    func waits() async throws {
        let (remote, socket) = (try await RemoteBatch(), NotifySocket())
        await remote.redis.kill9()
        let worker = try await worker(remote.redis.url, remote.folder, socket)
        var seen: [String] = []
        try await collect("READY=1\nSTATUS=waiting for Redis", socket, &seen)
        seen.removeAll()
        try await collect("WATCHDOG=1", socket, &seen)
        try await remote.redis.start()
        try await collect("READY=1\nSTATUS=worker ", socket, &seen)
        worker.signal(SIGTERM)
        #expect(await worker.wait() == .exited(0))
    }
}
