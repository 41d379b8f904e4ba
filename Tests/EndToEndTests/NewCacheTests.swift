import Origin
import Prefetch
import TestSupport
import Testing
import WebImage

/// Folders that are no cache yet, and which Redis goes with them.
@Suite("A new cache folder", .timeLimit(.minutes(5)))
struct NewCacheTests: CommandSuite {
    private let picture = GeneratedImage.png(seed: 3, width: 8, height: 8)

    @Test("submit into a folder that is no cache makes it one, with its own Redis, and a worker finds the batch there")
    func submit() async throws {
        let folder = TemporaryDirectory()
        let origin = try OriginServer()
        origin.route("/a.png", OriginResponse(body: picture))
        folder.write(Array("\(origin.url("/a.png"))\n".utf8), to: "urls.txt")
        let cache = folder.path("new")
        try await ran(["submit", folder.path("urls.txt"), "--cache", cache])
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"), ["--cache", cache, "--burst", "--allow-net", "127.0.0.0/8"])
        #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        #expect(worker.stdout.contains("finished 1 skipped 0"), "\(worker.stdout)")
    }

    @Test(
        "submit and worker with --cache take the Redis of their environment where the folder has none of its own",
        arguments: ["PREFETCH_REDIS_URL", "REDIS_URL"])
    func worker(variable: String) async throws {
        let remote = try await RemoteBatch()
        let origin = try OriginServer()
        origin.route("/a.png", OriginResponse(body: picture))
        let environment = [variable: remote.redis.url]
        let cache = remote.folder.path("new")
        let submit = try await ChildProcess(
            builtProduct("prefetch-coord"),
            ["submit", remote.list([origin.url("/a.png")]), "--name", "b", "--cache", cache], environment: environment)
        #expect(await submit.wait() == .exited(0), "\(submit.stderr)")
        #expect(try await remote.queue.batches.status(of: "b")?.total == 1)
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"), ["--cache", cache, "--burst", "--allow-net", "127.0.0.0/8"],
            environment: environment)
        #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        #expect(try await remote.queue.batches.status(of: "b")?.counts[.downloaded] == 1)
    }
}
