import Glibc
import Origin
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

/// Options of a batch and of single URLs, as workers follow them.
@Suite("Options at the workers", .timeLimit(.minutes(5)))
struct LoadOptionWorkerTests {
    private func png(_ seed: Int, _ headers: [(String, String)] = []) -> OriginResponse {
        OriginResponse(headers: headers, body: GeneratedImage.png(seed: UInt64(seed), width: 8, height: 8))
    }

    private func digest(_ seed: Int) -> String {
        SHA256.hash(GeneratedImage.png(seed: UInt64(seed), width: 8, height: 8)).hex
    }

    private func outcomes(_ id: String, _ queue: PrefetchQueue, _ count: Int) async throws -> [String] {
        try await queue.results.outcomes(of: id, range: 0..<count).map { PrefetchOutcome(rawValue: $0)?.name ?? "open" }
    }

    @Test("refreshCached asks for each URL again; 304 is notModified, and fresh is a hit where that is honoured")
    func refresh() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        for index in 0..<3 {
            fixture.origin.route(
                "/\(index)",
                png(index, [("ETag", "\"\(index)\"")] + (index == 2 ? [("Cache-Control", "max-age=3600")] : [])))
        }
        let urls = (0..<3).map { fixture.origin.url("/\($0)") }
        var options = BatchOptions()
        options.options = .refreshCached
        func run(_ options: BatchOptions) async throws -> [String] {
            let id = try await fixture.submit(urls, to: queue, options: options)
            _ = try await fixture.worker().run()
            return try await outcomes(id, queue, 3)
        }
        #expect(try await run(options) == ["downloaded", "downloaded", "downloaded"])
        fixture.origin.route("/1", png(11, [("ETag", "\"11\"")]))
        #expect(try await run(options) == ["notModified", "downloaded", "notModified"])
        options.options = .honorCacheControl
        #expect(try await run(options) == ["notModified", "notModified", "hit"])
        #expect(try await run(BatchOptions()) == ["hit", "hit", "hit"])
        #expect(fixture.origin.requestCount() == 8)
    }

    @Test("A batch never sends the cookies of another one, and they are gone when it has ended")
    func cookies() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        fixture.origin.setFallback { request in
            self.png(Int(request.path.dropFirst()) ?? 0, [("Set-Cookie", "sid=\(request.path.dropFirst(2)); Path=/")])
        }
        var options = BatchOptions()
        options.options = .handleCookies
        let worker = try fixture.worker(configure: {
            $0.maxConcurrentDownloads = 1
            $0.burst = false
        })
        async let counts = worker.run()
        var cookies: [[String?]] = []
        for round in 1...2 {
            let first = fixture.origin.requestCount()
            let urls = (0..<3).map { fixture.origin.url("/\($0)\(round)") }
            let id = try await fixture.submit(urls, to: queue, options: options)
            try await until { try await queue.batches.status(of: id)?.state != .running }
            cookies.append(fixture.origin.requests.dropFirst(first).map { $0.header("Cookie") })
        }
        #expect(cookies == [[nil, "sid=1", "sid=1"], [nil, "sid=2", "sid=2"]])
        try await until { await worker.context.manager.downloader.jarCount == 0 }
        worker.drain()
        #expect(try await counts.finished == 6)
    }

    @Test("Each URL has what its own line asks")
    func ofURLs() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        for index in 0..<5 { fixture.origin.route("/\(index)", png(index)) }
        let url = fixture.origin.url
        let lines = [
            #"{"url":"\#(url("/0"))","headers":{"X-Own":"0"}}"#,
            #"{"url":"\#(url("/1"))","sha256":"\#(digest(1))"}"#,
            #"{"url":"\#(url("/2"))","sha256":"\#(digest(1))"}"#,
            #"{"url":"\#(url("/none"))","mirrors":["\#(url("/3"))"]}"#,
            #"{"url":"\#(url("/4"))","options":["fromCacheOnly"]}"#,
            #"{"url":"\#(url("/4"))","options":["cacheMemoryOnly"]}"#,
        ]
        let id = try await fixture.submit(lines, to: queue, jobSize: 1)
        _ = try await fixture.worker().run()
        #expect(
            try await outcomes(id, queue, 6) == [
                "downloaded", "downloaded", "mismatch", "downloaded", "notCached", "downloaded",
            ])
        #expect(fixture.origin.requests.first { $0.path == "/0" }?.header("X-Own") == "0")
        // It was in memory alone, so whoever asks plainly has to fetch it for itself.
        #expect(fixture.origin.requestCount("/4") == 1)
        let plain = try await fixture.submit([url("/4")], to: queue)
        _ = try await fixture.worker().run()
        #expect(try await outcomes(plain, queue, 1) == ["downloaded"])
        #expect(fixture.origin.requestCount("/4") == 2)
        // The mirror's bytes stand under a key of their line, under neither of its URLs.
        #expect(!manager(fixture, has: url("/none")))
        #expect(!manager(fixture, has: url("/3")))
    }

    private func manager(_ fixture: WorkerFixture, has url: String) -> Bool {
        (try? DiskCache(directory: fixture.folder.path("cache")))?.existingPath(forKey: url) != nil
    }

    @Test("What continues in the background goes on past the drain timeout, the rest is left for others")
    func continueInBackground() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        for path in ["/plain", "/lasting"] {
            var response = png(1)
            response.fault = .stallBeforeHeader
            fixture.origin.route(path, response)
        }
        let lines = [
            fixture.origin.url("/plain"),
            #"{"url":"\#(fixture.origin.url("/lasting"))","options":["continueInBackground"]}"#,
        ]
        let id = try await fixture.submit(lines, to: queue, jobSize: 1)
        let worker = try fixture.worker { $0.drainTimeout = 0.05 }
        let run = Task { try await worker.run() }
        await fixture.origin.waitForRequests(2)
        worker.drain()
        // The plain one's transfer ends with the drain timeout.
        try await until { fixture.origin.openConnectionCount <= 1 }
        #expect(worker.context.shutdown.drained.isOpen && !worker.context.shutdown.stopping.isOpen)
        fixture.origin.release("/lasting")
        _ = try await run.value
        #expect(try await outcomes(id, queue, 2) == ["open", "downloaded"])
    }

    @Test("queryDiskSync ends hits while the list is queued: a list that is all there needs no worker")
    func hitsAtSubmit() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        for index in 0..<10 { fixture.origin.route("/\(index)", png(index)) }
        let urls = (0..<10).map { fixture.origin.url("/\($0)") }
        _ = try await fixture.submit(urls, to: queue)
        _ = try await fixture.worker().run()
        func submit(_ lines: [String], _ options: BatchOptions) async throws -> String {
            let name = "l\(UInt32.random(in: 0...UInt32.max))"
            fixture.folder.write(Array((lines.joined(separator: "\n") + "\n").utf8), to: name)
            let list = try URLList(path: fixture.folder.path(name))
            var batch = NewBatch(list: list)
            batch.settings.options = options
            let id = try await batch.open(in: queue).id
            let disk = try DiskCache(directory: fixture.folder.path("cache"))
            let feeder = ListFeeder(
                queue: queue, list: list, batch: id, jobSize: 3, hits: CacheHits(disk, options: options))
            #expect(try await feeder.feed() == .sealed)
            return id
        }
        var options = BatchOptions()
        options.options = .queryDiskSync
        let all = try await submit(urls, options)
        #expect(try await queue.batches.status(of: all)?.state == .done)
        #expect(try await queue.batches.status(of: all)?.counts[.hit] == 10)
        // Single lines may ask for it; the others wait for a worker.
        let some = try await submit(
            urls.prefix(4).enumerated().map { index, url in
                index % 2 == 0 ? #"{"url":"\#(url)","options":["queryDiskSync"]}"# : url
            }, BatchOptions())
        #expect(try await outcomes(some, queue, 4) == ["hit", "open", "hit", "open"])
        _ = try await fixture.worker().run()
        #expect(try await queue.batches.status(of: some)?.counts[.hit] == 4)
        #expect(try await BatchCheck(queue: queue, batch: some).run().isEmpty)
        #expect(try await BatchCheck(queue: queue, batch: all).run().isEmpty)
        // Where the failed URLs come first, so they do here.
        options.blacklist = .sd3
        let strict = try await submit(urls, options)
        #expect(try await queue.batches.status(of: strict)?.counts[.hit] == 0)
    }
}
