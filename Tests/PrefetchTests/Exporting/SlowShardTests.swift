import Glibc
import Origin
import TestSupport
import Testing
import Threading

@testable import Prefetch
@testable import WebImage

@Suite("Shards of which the last lines wait for slow hosts", .timeLimit(.minutes(5)))
struct SlowShardTests {
    private struct Result {
        var status: BatchStatus
        var outcomes: [UInt8] = []
        var tally: ImageShards.Tally
        /// Lines that were left to a retry, each time.
        var left: [Int] = []
        /// Lines that were queued, and shards that were written by then.
        var pushes: [(lines: Int, written: Int)] = []
        /// How often the list waited for shards.
        var waits = 0
    }

    private func fixture(_ count: Int) async throws -> (WorkerFixture, urls: [String]) {
        let fixture = try await WorkerFixture()
        let body = GeneratedImage.png(seed: 4, width: 12, height: 12)
        for index in 0..<count { fixture.origin.route("/\(index).png", OriginResponse(body: body)) }
        return (fixture, (0..<count).map { fixture.origin.url("/\($0).png") })
    }

    /// * `rate`: requests a second.
    /// * `pauses`: whether the batch is paused for six seconds while the list waits for shards.
    private func run(
        _ fixture: WorkerFixture, _ urls: [String], rate: Double, perShard: Int, mostOpen: Int, timeout: Duration,
        pauses: Bool = false
    ) async throws -> Result {
        fixture.folder.write(Array(urls.map { $0 + "\n" }.joined().utf8), to: "list.txt")
        let list = try ListStream([fixture.folder.path("list.txt")])
        mkdir(fixture.folder.path("lists"), 0o700)
        try list.keep(in: fixture.folder.path("lists"))
        let queue = try fixture.queue()
        var batch = NewBatch(list: list.list)
        batch.settings.options.requests.ratePerHost = rate
        let id = try await batch.open(in: queue).id
        list.leaveToBatch()
        var options = ShardOptions(.webDataset)
        (options.perShard, options.sidecar) = (perShard, .jsonl)
        let chain = try await BatchChain.read(id, queue: queue)
        let cache = try DiskCache(directory: fixture.folder.path("cache"))
        let export = try await BatchExport(chain, queue: queue, cache: cache, list: list)
        let shards = try ImageShards(
            path: fixture.folder.path("out"), options, member: "png", of: ShardBatch(chain), from: cache)
        let writer = ShardExport(chain, queue: queue, export: export, into: shards, from: cache, owner: ShardOwner()) {
            columns in
            ShardForm(columns, caption: nil) { line, key in
                let json = Array("{\"key\":\"\(key)\"}".utf8)
                return ShardSample(
                    line.result.outcome?.isSkipped == false ? .success : .failedToDownload, nil, json: json, row: json,
                    caption: nil)
            }
        }
        // Nothing is queued before it is known how far.
        let limit = FeedLimit.Writer()
        list.limits.set(mostOpen * perShard, by: limit)
        let result = Locked(
            Result(status: try #require(try await queue.batches.status(of: id)), tally: shards.tally))
        let feed = Task {
            try await ListFeeder(
                queue: queue, entries: BatchEntries(list), of: list.name, batch: id, window: "all", jobSize: 5
            ).feed(
                pushed: { lines in result.withLock { $0.pushes.append((lines, shards.tally.shards)) } },
                waiting: { if case .shards = $0 { result.withLock { $0.waits += 1 } } })
        }
        let worker = try fixture.worker { ($0.lease, $0.burst) = (600, false) }
        let work = Task { try await worker.run() }
        let pause = Task {
            guard pauses else { return }
            // Only the last lines of the open shards are missing.
            let open = 0..<(mostOpen * perShard)
            try await until {
                try await queue.results.outcomes(of: id, range: open).count { $0 != 0 } >= open.count - mostOpen
            }
            _ = try await queue.control.pause(.batch(id))
            // Twice as long as the shards wait, by the worker's heartbeats.
            let name = try #require(try await queue.workers.names().first)
            func beat() async throws -> Int {
                try await queue.workerRecords.all().first { $0.id == name }?.report.beat ?? 0
            }
            let first = try await beat()
            try await until { try await beat() - first > 6_000 }
            #expect(result.withLock { $0.left } == [])
            _ = try await queue.control.resume(.batch(id))
        }
        try await writer.follow(list, limit, mostOpen: mostOpen, timeout: timeout) { lines in
            result.withLock { $0.left.append(lines) }
        }
        #expect(try await feed.value == .sealed)
        try await pause.value
        worker.drain()
        _ = try await work.value
        #expect(try await BatchCheck(queue: queue, batch: id).run() == [])
        var ended = result.withLock { $0 }
        ended.status = try #require(try await queue.batches.status(of: id))
        ended.outcomes = try await queue.results.outcomes(of: id, range: 0..<urls.count)
        ended.tally = shards.tally
        return ended
    }

    /// What is in the cache ends at once; of the others, one in each shard but the last ones, no request is made for 50 s.
    @Test(
        "The list waits behind as many shards as may be open; then their last lines are left to a retry, in no pause",
        arguments: [false, true])
    func slow(pauses: Bool) async throws {
        let (perShard, shards, mostOpen) = (20, 12, 4)
        let (fixture, urls) = try await fixture(perShard * shards)
        let slow = Set((0..<(shards - mostOpen)).map { $0 * perShard + 7 })
        let cached = urls.indices.filter { !slow.contains($0) }.map { urls[$0] }
        _ = try await fixture.submit(cached, to: try fixture.queue())
        _ = try await fixture.worker().run()
        #expect(fixture.origin.requests.count == cached.count)
        // The first request would be made at once.
        let rate = 0.02
        let taken = HostSlotRequest(host: "127.0.0.1:\(fixture.origin.port)", count: 1, rate: rate)
        try await until { try await fixture.queue().hosts.reserve([taken])[0] != nil }

        let result = try await run(
            fixture, urls, rate: rate, perShard: perShard, mostOpen: mostOpen,
            timeout: pauses ? .seconds(3) : .milliseconds(300),
            pauses: pauses)
        #expect(result.status.state == .done && result.status.counts.finished == urls.count)
        let timeouts = urls.indices.filter { result.outcomes[$0] == PrefetchOutcome.timeout.rawValue }
        #expect(Set(timeouts) == slow)
        #expect(result.outcomes.count { $0 == PrefetchOutcome.hit.rawValue } == cached.count)
        #expect(fixture.origin.requests.count == cached.count)
        #expect(
            result.left.reduce(0, +) == slow.count && result.left.allSatisfy { $0 <= mostOpen * perShard / 10 }
                && result.waits > 0)
        #expect(result.tally.shards == shards && result.tally.images == cached.count)
        for push in result.pushes { #expect(push.lines <= (push.written + mostOpen) * perShard) }
    }

    @Test("A list of which most lines are slow is not cut short")
    func allSlow() async throws {
        let (fixture, urls) = try await fixture(30)
        let result = try await run(fixture, urls, rate: 10, perShard: 5, mostOpen: 2, timeout: .milliseconds(100))
        #expect(result.left == [] && result.waits > 0)
        #expect(result.outcomes.allSatisfy { $0 == PrefetchOutcome.downloaded.rawValue })
        #expect(result.tally.shards == 6 && result.tally.images == 30)
    }
}
