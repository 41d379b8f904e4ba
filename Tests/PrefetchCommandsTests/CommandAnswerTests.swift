import ArgumentParser
import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch
@testable import PrefetchCommands
@testable import Queue

/// Commands that only show something, asked in the process, of a real queue.
@Suite("What commands answer", .timeLimit(.minutes(5)))
struct CommandAnswerTests {
    private let redis: RedisServer
    private let queue: PrefetchQueue

    init() async throws {
        redis = try await RedisServer()
        queue = PrefetchQueue(connection: RedisConnection(try RedisConfiguration(url: redis.url), name: "test"))
    }

    private func open(_ id: String, sizes: Int...) async throws {
        _ = try await queue.batches.open(id: id, nonce: id, exactly: true, fields: [("details", "1000")])
        var jobs: [PrefetchJob] = []
        for (index, size) in sizes.enumerated() {
            let base = sizes[..<index].reduce(0, +)
            let entries = (base..<base + size).map {
                PrefetchJob.Entry(line: $0 + 1, url: "http://192.0.2.1/\(id)/\($0)")
            }
            jobs.append(PrefetchJob(batch: id, base: base, entries: entries))
        }
        let total = sizes.reduce(0, +)
        _ = try await queue.batches.push(
            batch: id, offset: 0, window: "all", count: total, jobs: jobs.map { $0.encoded() })
        _ = try await queue.batches.seal(batch: id, total: total)
    }

    private func settle(_ id: String, _ index: Int, _ outcome: PrefetchOutcome) async throws {
        var item = SettledEntry(position: 0, outcome: outcome)
        if outcome.isSkipped {
            item.failure = FailureDetail(
                line: index + 1, url: "http://h/", outcome: outcome, httpStatus: 404, detail: "")
        }
        let identity = try #require(try await queue.batches.status(of: id)?.identity)
        let report = QueueReports.Report(
            job: "\(id):\(index):1", batch: identity, base: index, count: 1, isFinal: true, settled: [item],
            keepDetails: 1000)
        _ = try await queue.reports.send([report], worker: "test")
    }

    @Test("status shows the newest batches and those that run, and says how many others there are")
    func newest() async throws {
        for number in 0..<6 {
            try await open("b\(number)", sizes: 1)
            if number != 1 { _ = try await queue.batches.cancel(batch: "b\(number)") }
        }
        func status(_ words: String...) async throws -> Sheet { try await StatusCommand.parse(words).answer(queue) }
        let few = try await status("--limit", "2")
        let shown = (0..<6).filter { number in few.lines.contains { $0.hasPrefix("b\(number) ") } }
        #expect(shown == [1, 4, 5] && few.lines[0] == "3 older batches not shown: --all, or --limit N")
        #expect(few.json.text.contains(#""batches_left_out":3"#) && !few.json.text.contains(#""b0""#))
        for words in [[], ["--all"], ["--limit", "6"]] {
            let all = try await StatusCommand.parse(words).answer(queue).lines
            #expect((0..<6).allSatisfy { number in all.contains { $0.hasPrefix("b\(number) ") } }, "\(all)")
            #expect(all.contains("no workers") && !all.contains { $0.contains("not shown") })
        }
        for words in [["b1", "--all"], ["--limit", "0"], ["--all", "--limit", "3"]] {
            #expect(throws: (any Error).self) { try StatusCommand.parse(words) }
        }
    }

    @Test("workers has those that are there, that left and that were lost")
    func workers() async throws {
        func answer() async throws -> Sheet { try await WorkersCommand.answer(queue, words: "") }
        #expect(try await answer().lines == ["no workers"])
        for name in ["w:1", "w:2", "w:3"] {
            let about = [("in_flight", "3"), ("max_concurrent_downloads", "8"), ("lease", "600000")]
            #expect(try await queue.workers.join(worker: name, lease: 600_000, about: about))
        }
        _ = try await queue.workers.reap(worker: "w:2", most: 1)
        try await queue.jobs.release(worker: "w:3", leaving: true)
        _ = try await queue.control.pause(.worker("w:1"))
        let sheet = try await answer()
        let lines = sheet.lines
        #expect(
            lines.count == 4 && lines[0].hasPrefix("WORKER  STATE            IN FLIGHT  FINISHED  SKIPPED"), "\(lines)")
        #expect(lines[1].hasPrefix("w:1     running, paused  3/8               0        0       0 B"), "\(lines)")
        #expect(Set(lines[2...].map { $0.split(separator: " ")[1] }) == ["left", "lost"])
        for member in [#""queue":{"name":"default""#, #""state":"running""#, #""state":"lost""#, #""state":"left""#] {
            #expect(sheet.json.text.contains(member), "\(member)")
        }
    }

    @Test("Metrics agree with status, and count lost workers with their jobs and their open URLs")
    func metrics() async throws {
        try await open("mine", sizes: 4, 4, 2)
        for index in 0..<4 { try await settle("mine", index, index == 0 ? .httpError : .downloaded) }
        for (name, facts) in [("a", []), ("b", [("trouble", "full\"\\\n")]), ("c", [("paused", "1")])] {
            let about = [("in_flight", "7"), ("retrying", "2")] + facts
            #expect(try await queue.workers.join(worker: name, lease: 600_000, about: about))
        }
        // Three requests of 90 to 108 ms, and one above all bounds.
        _ = try await queue.connection.command(
            [
                "HSET", RedisArgument(queue.keys.batch("mine")), "t27", "3", "t69", "1", "d6", "200300000", "a0", "5",
                "a1", "4",
            ])
        func page(_ format: MetricFormat) async throws -> String {
            format.text(QueueMetrics.families(try await queue.views.snapshot(), nil, took: 0), queue: "q")
        }
        let text = try await page(.prometheus)
        for line in [
            #"redis_up{queue="q"} 1"#, #"urls_total{queue="q",batch="mine",outcome="downloaded"} 3"#,
            #"urls_total{queue="q",batch="mine",outcome="httpError"} 1"#, #"batch_urls{queue="q",batch="mine"} 10"#,
            #"batch_state{queue="q",batch="mine",state="running"} 1"#, #"in_flight_downloads{queue="q"} 21"#,
            #"retrying_downloads{queue="q"} 6"#, #"workers{queue="q",state="running"} 1"#,
            #"workers{queue="q",state="trouble"} 1"#, #"workers{queue="q",state="paused"} 1"#,
            #"queue_jobs{queue="q",state="waiting"} 3"#,
            #"tries_total{queue="q",batch="mine",result="failed"} 5"#,
            #"fetch_duration_seconds_bucket{queue="q",batch="mine",le="0.064"} 0"#,
            #"fetch_duration_seconds_bucket{queue="q",batch="mine",le="0.128"} 3"#,
            #"fetch_duration_seconds_bucket{queue="q",batch="mine",le="+Inf"} 4"#,
            #"fetch_duration_seconds_sum{queue="q",batch="mine"} 200.3"#,
        ] { #expect(text.contains("\nprefetch_\(line)\n"), "\(line) in\n\(text)") }
        _ = try await queue.control.pause(.batch("mine"))
        let open = try await page(.openmetrics)
        #expect(open.contains(#"prefetch_batch_state{queue="q",batch="mine",state="paused"} 1"# + "\n"))
        #expect(open.contains("# TYPE prefetch_urls counter\n") && open.hasSuffix("# EOF\n"))
        _ = try await queue.control.resume(.batch("mine"))
        _ = try await queue.jobs.claim(worker: "a", sequence: 1, count: 3, lease: 600_000)
        // The second name was never registered.
        for name in ["a", "nobody"] { _ = try await queue.workers.reap(worker: name) }
        let lost = try await page(.prometheus)
        for (name, value) in [("workers_lost", 1), ("jobs_reclaimed", 3), ("urls_reclaimed", 6)] {
            #expect(lost.contains("\nprefetch_\(name)_total{queue=\"q\"} \(value)\n"), "\(lost)")
        }
    }
}
