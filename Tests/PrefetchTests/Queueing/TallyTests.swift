import Origin
import Redis
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

@Suite("What dashboards add up", .timeLimit(.minutes(5)))
struct TallyTests {
    /// Reports outcomes as a worker does, and adds what was new of them to a tally.
    private func report(
        _ f: QueueFixture, _ job: PrefetchJob, _ outcomes: [PrefetchOutcome?], status: Int = 404,
        into tally: inout HostTally
    ) async throws {
        let report = QueueFixture.report(job, outcomes, isFinal: false) { item in
            if item.outcome == .httpError { item.failure?.httpStatus = status }
        }
        guard let first = try await f.queue.reports.send([report], worker: "w")[0].counted else { return }
        let positions = first.map(\.position)
        tally.add(report.settled.filter { positions.contains($0.position) }, of: job)
    }

    @Test("Statuses and hosts are counted once, however often a report or a tally comes; a hit is of no host")
    func once() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [6], fields: [("keep", "600")])
        try await f.join("w")
        let job = try await f.claim("w", 1)[0].job
        var tally = HostTally()
        for _ in 0..<3 { try await report(f, job, [.downloaded, .httpError, .httpError], into: &tally) }
        try await report(f, job, [nil, nil, nil, .httpError, .hit], status: 503, into: &tally)
        for _ in 0..<3 { try await f.queue.hosts.tally(tally, worker: "w", token: "one") }
        let snapshot = try #require(try await f.queue.views.snapshot(of: "b"))
        #expect(snapshot.httpStatuses == [404: 2, 503: 1])
        #expect(snapshot.hosts == ["h": BatchSnapshot.Host(finished: 4, skipped: 3, bytes: 100)])
        #expect(
            snapshot.counts["w"]?.finished == 5 && snapshot.status.counts.finished == 5
                && snapshot.status.counts[.httpError] == 3)
        #expect(
            snapshot.workers["w"]?.condition == .running && snapshot.workers["w"]?.leaseLeft.map { $0 > 50_000 } == true
        )
        // The batch ends before its last tally comes, which is counted all the same and leaves Redis with the rest.
        tally = HostTally()
        try await report(f, job, [nil, nil, nil, nil, nil, .timeout], into: &tally)
        #expect(try await f.queue.batches.status(of: "b")?.state == .done)
        try await f.redis("DEL", f.keys.hosts("b"))
        try await f.queue.hosts.tally(tally, worker: "w", token: "two")
        #expect(
            try await f.queue.views.snapshot(of: "b")?.hosts == [
                "h": BatchSnapshot.Host(finished: 1, skipped: 1, bytes: 0)
            ]
        )
        #expect((1...600).contains(try await f.redis("TTL", f.keys.hosts("b")).int ?? 0))
        #expect(try await f.findings("b") == [])
        // With the batch it goes, and does not come back.
        #expect(try await f.queue.batches.remove(batch: "b") == .removed)
        try await f.queue.hosts.tally(tally, worker: "w", token: "three")
        #expect(try await f.redis("EXISTS", f.keys.hosts("b"), f.keys.batch("b")).int == 0)
        #expect(try await f.queue.views.snapshot(of: "b") == nil)
        // Of a worker nobody knows nothing is counted, and it is not made known by it.
        try await f.queue.hosts.tally(tally, worker: "nobody", token: "one")
        #expect(try await f.redis("EXISTS", f.keys.worker("nobody")).int == 0)
    }

    private static let quick: DownloadedImage.Timing = {
        var timing = DownloadedImage.Timing()
        (timing.nameLookup, timing.connect, timing.firstByte, timing.total) = (0.001, 0.003, 0.01, 0.02)
        return timing
    }()

    @Test("Formats, sizes, durations and tries of all workers are added, whichever of them a token comes from")
    func fetches() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [8])
        for worker in ["w", "v"] { try await f.join(worker) }
        let job = try await f.claim("w", 1)[0].job
        var expected = FetchTally()
        for (worker, positions) in [("w", 0..<5), ("v", 5..<8)] {
            var tally = HostTally()
            for position in positions {
                let outcome: PrefetchOutcome = [.downloaded, .notModified, .httpError, .hit][position % 4]
                var item = SettledEntry(position: position, outcome: outcome)
                if outcome != .hit {
                    var timing = Self.quick
                    timing.total *= Double(position + 1)
                    timing.reusedConnection = position == 4
                    let fetch = FetchTally.Fetch(
                        format: outcome.isSkipped ? nil : position == 4 ? .png : .jpeg,
                        timing: outcome.isSkipped ? nil : timing, tries: position % 3 + 1)
                    (item.bytes, item.fetch) = (outcome == .downloaded ? 9_999 + position : 0, fetch)
                    expected.add(fetch, outcome: outcome, bytes: item.bytes)
                }
                tally.add([item], of: job)
            }
            for _ in 0..<2 { try await f.queue.hosts.tally(tally, worker: worker, token: "one") }
        }
        let found = try #require(try await f.queue.views.snapshot(of: "b")).status.fetches
        #expect(found == expected)
        #expect(found.formats == [.jpeg: 1, .png: 1] && found.sizes == [1, 1, 0, 0, 0, 0])
        // Of positions 0, 1, 4 and 5: tries 1, 2, 2, 3; of the two failures 3 and 1.
        #expect(found.successfulTries == 4 && found.failedTries == 0 + 1 + 1 + 2 + 3 + 1)
        #expect(found.durations.total == 4 && found.durations.sum == 20_000 * (1 + 2 + 5 + 6) && found.reused == 1)
        #expect(found.mean(.nameLookup) == 0.001 && found.mean(.tls) == 0)
        #expect(try await f.queue.batches.status(of: "b")?.fetches == expected)
        #expect(try await f.findings("b").isEmpty)
    }

    @Test("Bodies that cannot be verified are counted by their format")
    func unsupported() {
        var tally = FetchTally()
        for format in [ImageFormat.avif, .avif, .svg] {
            tally.add(FetchTally.Fetch(format: format, timing: nil, tries: 1), outcome: .unsupported, bytes: 0)
        }
        #expect(tally.unsupported == [.avif: 2, .svg: 1] && tally.formats == [:] && tally.failedTries == 3)
        let fields = tally.fields.map { ($0.name, RedisValue.bytes(Array(String($0.value).utf8))) }
        #expect(FetchTally(fields: Dictionary(uniqueKeysWithValues: fields)) == tally)
    }

    @Test("Fields that nobody can have counted are passed over")
    func impossible() {
        let values = [
            "t1": "9223372036854775807", "t01": "9223372036854775807", "t2": "-5", "t3": "no", "t70": "4", "s6": "4",
            "f99": "4", "d7": "4", "a4": "4", "t": "4", "tt": "4", "state": "4",
        ]
        #expect(FetchTally(fields: values.mapValues { RedisValue.bytes(Array($0.utf8)) }) == FetchTally())
    }

    @Test(
        "A line that is no figure changes no field of a batch",
        arguments: ["fed 1", "t 1", "t123 1", "o1 5", "s1 -1", "x1 1", "t1 1 1"])
    func strangeFigures(line: String) async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1])
        try await f.join("w")
        let before = try await f.redis("HGETALL", f.keys.batch("b")).fields?.compactMapValues(\.string)
        try await f.queue.hosts.tally([("b", line + "\n")], worker: "w", token: "one")
        #expect(try await f.redis("HGETALL", f.keys.batch("b")).fields?.compactMapValues(\.string) == before)
    }

    @Test("A report of hits leaves nothing to tell")
    func hits() {
        var tally = HostTally()
        let job = QueueFixture.jobs("b", sizes: [5])[0]
        let outcomes: [PrefetchOutcome] = [.hit, .blacklisted, .invalidURL, .cancelled, .notCached]
        let report = QueueFixture.report(job, outcomes)
        tally.add(report.settled, of: job)
        #expect(tally.isEmpty && tally.encoded.isEmpty)
        tally.add([SettledEntry(position: 0, outcome: .mismatch)], of: job)
        #expect(tally.encoded.map(\.lines) == ["h 1 1 0\n"])
    }

    @Test("Hosts are told apart whatever stands behind them, and what is no address is of none")
    func sites() {
        let urls = [
            "http://h/a", "http://h/b", "http://h", "http://hello/x", "http://h?x=a/b", "HTTP://H:80/", "https://u@h/c",
            "http://h/d", "nothing", "a:b/c", "http://ä/", "http:///x",
        ]
        let entries = urls.enumerated().map { PrefetchJob.Entry(line: $0 + 1, url: $1) }
        var tally = HostTally()
        tally.add(
            urls.indices.map { SettledEntry(position: $0, outcome: .dns) },
            of: PrefetchJob(batch: "b", base: 0, entries: entries))
        #expect(tally.encoded.map(\.lines) == ["h 6 6 0\nh:80 1 1 0\nhello 1 1 0\n"])
    }

    @Test(
        "A batch of a thousand hosts keeps 256 of them, and is told 32 at a time; a wrong key is its own batch's fault")
    func bounded() async throws {
        let f = try await QueueFixture()
        try await f.join("w")
        var tally = HostTally()
        for id in ["b", "c"] {
            try await f.fill(id, sizes: [100])
            var job = QueueFixture.jobs(id, sizes: [100])[0]
            for index in job.entries.indices { job.entries[index].url = "http://h\(index).example/" }
            try await report(f, job, Array(repeating: .downloaded, count: 99), into: &tally)
        }
        try await f.redis("SET", f.keys.hosts("b"), "mine")
        for host in 0..<250 { try await f.redis("HSET", f.keys.hosts("c"), "x\(host)", "1 0 0") }
        try await f.queue.hosts.tally(tally, worker: "w", token: "one")
        #expect(try await f.redis("GET", f.keys.hosts("b")).string == "mine")
        #expect(try await f.redis("HLEN", f.keys.hosts("c")).int == 256)
        #expect(tally.encoded.map { $0.lines.split(separator: "\n").count } == [32, 32])
        try await f.redis("DEL", f.keys.hosts("b"))
        try await f.queue.hosts.tally(tally, worker: "w", token: "two")
        #expect(try await f.redis("HLEN", f.keys.hosts("b")).int == 32)
        #expect(try await f.queue.batches.status(of: "b")?.counts.finished == 99)
    }

    @Test("A worker tells what it asked of hosts with its heartbeats and as it leaves, and nothing of hits")
    func worker() async throws {
        let f = try await WorkerFixture()
        f.origin.setFallback { _ in OriginResponse(status: 404) }
        for index in 0..<20 {
            f.origin.route(
                "/\(index).png", OriginResponse(body: GeneratedImage.png(seed: UInt64(index), width: 9, height: 9)))
        }
        let urls = (0..<30).map { f.origin.url("/\($0).png") }
        let queue = try f.queue()
        let first = try await f.submit(urls, to: queue, jobSize: 4)
        let counts = try await f.worker {
            $0.name = "first"
            $0.maxConcurrentDownloads = 2
        }.run()
        let snapshot = try #require(try await queue.views.snapshot(of: first))
        let host = try #require(HostTally.host(of: urls[0]))
        #expect(snapshot.hosts == [host: BatchSnapshot.Host(finished: 30, skipped: 10, bytes: counts.bytes)])
        #expect(snapshot.httpStatuses == [404: 10] && snapshot.status.counts == counts)
        let fetches = snapshot.status.fetches
        #expect(fetches.formats == [.png: 20] && fetches.sizes == [20, 0, 0, 0, 0, 0])
        #expect(fetches.successfulTries == 20 && fetches.failedTries == 10 && fetches.durations.total == 20)
        #expect((1..<20).contains(fetches.reused))
        // All of the time is in one of the steps, but for what is cut off of each.
        let steps = FetchTally.Stage.allCases.reduce(0) { $0 + fetches.microseconds($1) }
        #expect(fetches.durations.sum > 0 && (0...100).contains(fetches.durations.sum - steps))
        let second = try await f.submit(urls, to: queue, jobSize: 4)
        let again = try await f.worker { $0.name = "second" }.run()
        #expect(again[.hit] == 20 && again[.blacklisted] == 10)
        #expect(try await queue.views.snapshot(of: second)?.hosts == [:])
        let told = try await queue.redis.read(
            ["first", "second"].map { ["HEXISTS", RedisArgument(queue.keys.worker($0)), "tallied"] })
        #expect(told.map(\.int) == [1, 0])
    }

    @Test(
        "The host of a URL, with its port and without its user",
        arguments: [
            ("http://A.example/x", "a.example"), ("https://u:p@h:81?q", "h:81"), ("http://[::1]:8/", "[::1]:8"),
            ("no url", nil), ("http:///x", nil), ("http://ü.example/", nil),
        ] as [(String, String?)])
    func host(_ url: String, _ host: String?) {
        #expect(HostTally.host(of: url) == host)
    }

    @Test("The commands of a snapshot do not depend on the number of URLs")
    func cost() async throws {
        let f = try await QueueFixture()
        var costs: [Int] = []
        for total in [1000, 1_000_000] {
            let id = "n\(total)"
            try await f.open(id, fields: [("total", String(total))])
            try await f.redis("SETRANGE", f.keys.outcomes(id), String(total - 1), "\u{1}")
            try await f.redis("HSET", f.keys.batch(id), "finished", String(total), "o1", String(total))
            try await f.redis("HSET", f.keys.workerCounts(id), "w:1", String(total))
            // Private to this test: the server is shared, so commands are counted by the one script that runs.
            _ = try await f.queue.views.snapshot(of: id)
            // The shortest of some is what it costs; the others waited for a processor.
            var shortest = Duration.seconds(60)
            for _ in 0..<10 {
                let began = ContinuousClock.now
                let snapshot = try #require(try await f.queue.views.snapshot(of: id))
                shortest = min(shortest, ContinuousClock.now - began)
                #expect(snapshot.status.total == total && snapshot.counts["w"]?.finished == total)
            }
            costs.append(Int(shortest / .microseconds(1)))
        }
        #expect(costs[1] < 20_000, "\(costs)")
    }
}
