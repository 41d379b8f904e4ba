import Origin
import Queue
import TestSupport
import Testing

/// The programs of Examples, as their README has them.
@Suite("Examples of the library", .timeLimit(.minutes(5)))
struct ExamplesTests {
    private let origin: OriginServer

    init() throws {
        origin = try OriginServer()
        origin.setFallback { request in
            if request.path.hasSuffix(".pgm") {
                return OriginResponse(body: Array("P5 2 2 255\n".utf8) + [0, 90, 180, 255])
            }
            return request.path.hasSuffix(".png")
                ? OriginResponse(body: GeneratedImage.png(seed: 4, width: 12, height: 12)) : OriginResponse(status: 404)
        }
    }

    @Test("A list in one process tells each URL, and what failed")
    func prefetch() async throws {
        let folder = TemporaryDirectory()
        let urls = ["/a.png", "/gone"].map { origin.url($0) }
        let program = try await ChildProcess(
            builtProduct("ExamplePrefetch"), [folder.path("cache"), "127.0.0.0/8"] + urls)
        #expect(await program.wait() == .exited(0), "\(program.stderr)")
        let lines = program.stdout.split(separator: "\n").map(String.init)
        #expect(lines.count == 6 && lines.filter { $0.hasPrefix("progress ") } == ["progress 1/2", "progress 2/2"])
        #expect(lines.filter { $0.hasPrefix("prefetched ") }.sorted() == urls.map { "prefetched \($0)" }.sorted())
        #expect(lines.contains("completed 2, skipped 1") && lines.last?.hasPrefix(urls[1] + ": ") == true)
    }

    @Test(
        "Wrong arguments are answered with those that are right",
        arguments: [
            ("ExamplePrefetch", ["cache", "none"]), ("ExamplePrefetch", ["cache", "127/8", "http://h.test/a.png"]),
            ("ExampleWorker", ["redis://127.0.0.1:1"]), ("ExampleFollower", []),
        ])
    func usage(_ program: String, _ words: [String]) async throws {
        let child = try await ChildProcess(builtProduct(program), words)
        #expect(await child.wait() == .exited(64))
        #expect(child.stderr.hasPrefix("usage: \(program) ") && child.stderr.split(separator: "\n").count == 1)
    }

    @Test("A worker in a service decodes and filters as its program says, and a follower draws the list")
    func workerAndFollower() async throws {
        let b = try await RemoteBatch()
        let urls = ["/a.png", "/b.pgm", "/thumbs/c.png", "/gone"].map { origin.url($0) }
        let follower = try await ChildProcess(
            builtProduct("ExampleFollower"), [b.redis.url] + urls)
        try await until { try await !b.queue.catalog.running().isEmpty }
        let worker = try await ChildProcess(
            builtProduct("ExampleWorker"), [b.redis.url, b.folder.path("cache"), "127.0.0.0/8"])
        #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        #expect(worker.stdout == "finished 4, skipped 2\n")
        #expect(await follower.wait() == .exited(0), "\(follower.stderr)")
        let lines = follower.stdout.split(separator: "\n").map(String.init)
        #expect(lines.prefix(4).last == "[####################] 4/4")
        #expect(lines[4] == "2 images, 2 skipped")
        #expect(lines[5...].map { $0.split(separator: ",")[0] } == ["line 3: refused", "line 4: httpError"])
        #expect(origin.requests.allSatisfy { !$0.path.contains("thumbs") })
    }
}
