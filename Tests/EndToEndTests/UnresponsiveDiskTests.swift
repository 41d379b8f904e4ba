import Glibc
import Origin
import Prefetch
import TestSupport
import Testing
import WebImage

/// Disks that stop answering under a worker: a file system that is frozen by fsfreeze(8).
@Suite(
    "Disks that do not respond", .timeLimit(.minutes(5)),
    .enabled(if: LoopFileSystem.isPermitted, "this machine permits no mount"))
struct UnresponsiveDiskTests {
    /// A file system that stands still from ``freeze()`` to ``thaw()``, and is never left so.
    private final class Disk: Sendable {
        let volume: LoopFileSystem
        init?() {
            guard let volume = LoopFileSystem("ext4", megabytes: 256) else { return nil }
            self.volume = volume
        }
        deinit { thaw() }
        func freeze() { #expect(LoopFileSystem.shell("fsfreeze -f '\(volume.path)'")) }
        func thaw() { _ = LoopFileSystem.shell("fsfreeze -u '\(volume.path)' 2>/dev/null") }
    }

    private func worker(
        _ remote: RemoteBatch, cache: String, lease: String, _ options: [String] = []
    )
        async throws -> ChildProcess
    {
        try await ChildProcess(
            builtProduct("prefetch-worker"),
            [
                "--redis", remote.redis.url, "--cache", cache, "--allow-net", "127.0.0.0/8",
                "--max-concurrent-downloads", "4", "--lease", lease,
            ] + options)
    }

    /// Images past what is kept in memory.
    private func origin(_ count: Int) throws -> OriginServer {
        let origin = try OriginServer()
        for index in 0..<count {
            var body = GeneratedImage.png(seed: UInt64(index), width: 8, height: 8)
            body += [UInt8](repeating: UInt8(index), count: 4 << 20)
            origin.route(
                "/\(index).png", OriginResponse(body: body, fault: .drip(bytes: 256 << 10, seconds: 0.05)))
        }
        return origin
    }

    @Test("A stall of more than a lease and less than three costs neither the registration nor a job")
    func shortStall() async throws {
        guard let disk = Disk() else { return }
        let remote = try await RemoteBatch()
        let origin = try origin(12)
        let worker = try await worker(remote, cache: "\(disk.volume.path)/cache", lease: "2s")
        try await until { worker.stderr.contains("is ready") }
        let name = try await remote.queue.workers.names()
        try await remote.submit((0..<12).map { origin.url("/\($0).png") }, as: "b")
        await origin.waitForRequests(4)
        disk.freeze()
        try await Task.sleep(for: .milliseconds(4500))
        #expect(try await remote.queue.workers.names() == name)
        disk.thaw()
        try await until { try await remote.queue.batches.status(of: "b")?.state == .done }
        #expect(try await remote.queue.batches.status(of: "b")?.counts[.downloaded] == 12)
        #expect(try await remote.queue.workers.names() == name)
        #expect(origin.requestCount() == 12)
        worker.signal(SIGTERM)
        #expect(await worker.wait() == .exited(0))
        #expect(
            !worker.stderr.contains("declared lost") && !worker.stderr.contains("held: disk"),
            "\(worker.stderr)")
        // Mounted until here.
        withExtendedLifetime(disk) {}
    }

    @Test(
        "A longer one gives the jobs to others: status says held: disk, and the worker goes on when the disk does"
    )
    func longStall() async throws {
        guard let disk = Disk() else { return }
        let remote = try await RemoteBatch()
        let origin = try origin(12)
        let hanging = try await worker(remote, cache: "\(disk.volume.path)/cache", lease: "1s")
        try await until { hanging.stderr.contains("is ready") }
        let name = try await remote.queue.workers.names()
        try await remote.submit(
            (0..<12).map { origin.url("/\($0).png") }, as: "b", ["--job-size", "2"])
        await origin.waitForRequests(4)
        disk.freeze()
        let other = try await worker(
            remote, cache: remote.folder.path("other"), lease: "1s", ["--burst"])
        try await until {
            let status = try await remote.ended(["status"])
            await status.wait()
            return status.stdout.contains("held: disk since ")
        }
        // While the disk hangs.
        try await until { try await remote.queue.batches.status(of: "b")?.state == .done }
        #expect(await other.wait() == .exited(0))
        #expect(try await remote.queue.workers.names() == name)
        let counts = try #require(try await remote.queue.batches.status(of: "b")).counts
        #expect(counts[.downloaded] + counts[.hit] == 12, "\(counts)")
        disk.thaw()
        try await until { hanging.stderr.contains("the disk answers again") }
        #expect(
            hanging.stderr.contains("held: disk") && !hanging.stderr.contains("declared lost"), "\(hanging.stderr)")
        try await remote.submit((0..<4).map { origin.url("/\($0).png") }, as: "next")
        try await until { try await remote.queue.batches.status(of: "next")?.state == .done }
        hanging.signal(SIGTERM)
        #expect(await hanging.wait() == .exited(0))
        withExtendedLifetime(disk) {}
    }
}
