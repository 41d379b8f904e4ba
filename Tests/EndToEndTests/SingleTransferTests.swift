import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

@Suite("One transfer for each image", .timeLimit(.minutes(5)))
struct SingleTransferTests {
    @Test("A thousand requests for one URL, from 8 tasks in each of 4 caches, make one transfer")
    func oneURL() async throws {
        let origin = try OriginServer()
        let picture = GeneratedImage.png(seed: 3, width: 8, height: 8)
        origin.route("/a.png", OriginResponse(body: picture, delay: 0.3))
        let folder = TemporaryDirectory()
        // Locks belong to open file descriptions, so that four caches exclude each other as four processes do.
        let managers = try (0..<4).map { _ in
            var downloads = ImageDownloader.Configuration()
            downloads.addressPolicy = AddressPolicy(allow: [CIDR("127.0.0.0/8")!])
            return try ImageManager(cache: ImageCache(directory: folder.path("cache")), downloads: downloads)
        }
        let ended = try await withThrowingTaskGroup(of: Int.self) { group in
            for manager in managers {
                for _ in 0..<8 {
                    group.addTask {
                        var count = 0
                        for _ in 0..<32 {
                            _ = try await manager.loadImage(with: origin.url("/a.png"))
                            count += 1
                        }
                        return count
                    }
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(ended == 1024)
        #expect(origin.requestCount() == 1)
    }

    @Test("The same from four worker processes: a thousand lines, one transfer, a thousand images")
    func fourProcesses() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0.3)
        let workers = try await bench.workers(4)
        try await until { try await bench.queue.workers.names().count == 4 }
        bench.folder.write(
            Array(String(repeating: bench.origin.url("/one.png") + "\n", count: 1000).utf8), to: "one.txt")
        let words = ["submit", bench.folder.path("one.txt"), "--name", "one", "--job-size", "8", "--window", "all"]
        #expect(await (try await bench.coord(words)).wait() == .exited(0))
        try await bench.expectAllThere(1000, "one", workers: workers)
        #expect(bench.origin.requestCount() == 1)
    }

    @Test("Two batches of the same URLs on four workers: the origin sees each URL once")
    func twoBatches() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0.05)
        try await bench.submit(200)
        let list = bench.folder.path("urls.txt")
        let words = ["submit", list, "--name", "again", "--job-size", "4", "--window", "all"]
        #expect(await (try await bench.coord(words)).wait() == .exited(0))
        let workers = try await bench.workers(4)
        try await until { try await bench.queue.batches.status(of: "again")?.state == .done }
        try await bench.expectAllThere(200, workers: workers)
        let status = try #require(try await bench.queue.batches.status(of: "again"))
        #expect(status.counts[.downloaded] + status.counts[.hit] == 200)
        let counts = (0..<200).map { bench.origin.requestCount("/urls/\($0).png") }
        #expect(counts.allSatisfy { $0 == 1 }, "\(counts)")
    }

    @Test("Two signed URLs of one image are one transfer and a hit with --cache-key without-query")
    func signedURLs() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0.2)
        let urls = ["/a.png?sig=1", "/a.png?sig=2"].map { bench.origin.url($0) + "\n" }
        bench.folder.write(Array(urls.joined().utf8), to: "signed.txt")
        let words = ["submit", bench.folder.path("signed.txt"), "--name", "signed", "--job-size", "1"]
        #expect(await (try await bench.coord(words + ["--cache-key", "without-query"])).wait() == .exited(0))
        let workers = try await bench.workers(2)
        try await until { try await bench.queue.batches.status(of: "signed")?.state == .done }
        let status = try #require(try await bench.queue.batches.status(of: "signed"))
        #expect(status.counts[.downloaded] == 1 && status.counts[.hit] == 1)
        #expect(bench.origin.requestCount() == 1)
        try await bench.leave(workers)
    }
}
