import Glibc
import Origin
import Prefetch
import TestSupport
import Testing
import WebImage

/// Limits of open files: a worker keeps within them, whatever they are.
@Suite("File descriptors", .timeLimit(.minutes(5)))
struct DescriptorTests {
    private func worker(
        _ remote: RemoteBatch, limit: Int, _ options: String = ""
    ) async throws
        -> ChildProcess
    {
        try await remote.shell(
            "ulimit -n \(limit); exec '\(builtProduct("prefetch-worker"))' --redis '\(remote.redis.url)' --cache "
                + "'\(remote.folder.path("cache"))' --allow-net 127.0.0.0/8 --burst \(options)")
    }

    @Test(
        "With fewer than 128 a worker and a run are refused, and say what to do", arguments: [64, 127])
    func refused(limit: Int) async throws {
        let remote = try await RemoteBatch()
        let worker = try await worker(remote, limit: limit)
        #expect(await worker.wait() == .exited(78), "\(worker.stderr)")
        #expect(
            worker.stderr.contains("may open \(limit) files at once, and a worker needs 128"),
            "\(worker.stderr)")
        #expect(worker.stderr.contains("hint: ulimit -Hn 1024"))
        let list = remote.list(["http://127.0.0.1:9/a.png"])
        let run = try await remote.shell(
            "ulimit -n \(limit); exec '\(builtProduct("prefetch-coord"))' run '\(list)' --cache "
                + "'\(remote.folder.path("cache"))'")
        #expect(await run.wait() == .exited(78), "\(run.stderr)")
    }

    @Test("With 128 as many transfers as fit, small and large, and every image comes")
    func few() async throws {
        let remote = try await RemoteBatch()
        let origin = try OriginServer()
        for index in 0..<80 {
            var body = GeneratedImage.png(seed: UInt64(index), width: 8, height: 8)
            if index.isMultiple(of: 2) { body += [UInt8](repeating: UInt8(index), count: 1 << 20) }
            origin.route("/\(index).png", OriginResponse(body: body))
        }
        try await remote.submit((0..<80).map { origin.url("/\($0).png") }, as: "b")
        let worker = try await worker(remote, limit: 128, "--max-concurrent-downloads 32")
        // Of more than one, and of the number that it was told, nobody is to have more than fit.
        let told = try await remote.ended([
            "set", "--all", "--max-concurrent-downloads", "400",
        ])
        await told.wait()
        #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        #expect(
            worker.stderr.contains(
                "the limit of open files, 128, is enough for 5 transfers at once and not for 32"))
        #expect(!worker.stderr.contains("paused"), "\(worker.stderr)")
        #expect(try await remote.queue.batches.status(of: "b")?.counts[.downloaded] == 80)
    }
}
