import Glibc
import Origin
import Prefetch
import TestSupport
import Testing
import WebImage

/// Workers of one queue of which one refuses what others take.
@Suite("Workers with other settings", .timeLimit(.minutes(5)))
struct OtherSettingsTests {
    private static let urls = 400

    private func origin() throws -> OriginServer {
        let origin = try OriginServer()
        let image = GeneratedImage.png(seed: 5, width: 16, height: 16)
        origin.setFallback { _ in OriginResponse(body: image) }
        return origin
    }

    @Test(
        "What one worker refuses is left to the other: every image is fetched once, and who asks sees how they differ",
        arguments: [["--deny-net", "127.0.0.0/8"], ["--url-filter", "[02468]$"], ["--max-size", "20"]])
    func one(options: [String]) async throws {
        let (b, origin) = (try await RemoteBatch(), try origin())
        let bad = try await b.workers(1, options, isBurst: false)
        try await until { try await b.queue.workers.names().count == 1 }
        let good = try await b.workers(1, isBurst: false)
        try await until { try await b.queue.workers.names().count == 2 }
        let shown = try await b.done(["workers"])
        #expect(shown.stdout.contains("the workers' settings differ; URLs that one refuses are left to the others:\n"))
        #expect(shown.stdout.contains(options.joined(separator: " ")), "\(shown.stdout)")
        let status = try await b.done(["status"])
        #expect(status.stdout.contains("the workers' settings differ: "), "\(status.stdout)")
        try await b.submit((0..<Self.urls).map { origin.url("/\($0)") }, as: "b", ["--job-size", "16"])
        try await until { try await b.queue.batches.status(of: "b")?.state == .done }
        let counts = try #require(try await b.queue.batches.status(of: "b")).counts
        #expect(counts[.downloaded] == Self.urls && counts.finished == Self.urls, "\(counts)")
        for number in 0..<Self.urls {
            let count = origin.requestCount("/\(number)")
            // What is too large for one worker is known after its request only.
            #expect(options[0] == "--max-size" ? (1...2).contains(count) : count == 1, "\(number): \(count)")
        }
        try await b.done(["fsck"])
        for worker in bad + good {
            worker.signal(SIGTERM)
            #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        }
    }

    @Test("Where all refuse a URL it ends as refused, whatever else differs; alone it does at once")
    func all() async throws {
        let (b, origin) = (try await RemoteBatch(), try origin())
        let closed = ["--deny-net", "127.0.0.0/8"]
        let workers =
            try await b.workers(1, closed, isBurst: false)
            + b.workers(1, closed + ["--max-pixels", "1000"], isBurst: false)
        try await until { try await b.queue.workers.names().count == 2 }
        try await b.submit((0..<100).map { origin.url("/\($0)") }, as: "b", ["--job-size", "16"])
        try await until { try await b.queue.batches.status(of: "b")?.state == .done }
        let counts = try #require(try await b.queue.batches.status(of: "b")).counts
        #expect(counts[.refused] == 100 && counts.finished == 100, "\(counts)")
        #expect(origin.requestCount() == 0)
        for worker in workers {
            worker.signal(SIGTERM)
            #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        }
        try await b.submit((0..<100).map { origin.url("/\($0)") }, as: "alone")
        for worker in try await b.workers(1, closed) { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }
        #expect(try await b.queue.batches.status(of: "alone")?.counts[.refused] == 100)
        #expect(origin.requestCount() == 0)
    }
}
