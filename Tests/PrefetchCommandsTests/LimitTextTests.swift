import Prefetch
import Testing
import WebImage

@testable import PrefetchCommands

@Suite("What limits a run, in words", .timeLimit(.minutes(5)))
struct LimitTextTests {
    private static func limit(_ cause: LimitCause, _ change: (inout RunLimit) -> Void = { _ in }) -> RunLimit {
        var limit = RunLimit(cause)
        (limit.workers, limit.allWorkers) = (2, 2)
        (limit.report.maxConcurrentDownloads, limit.report.inFlight) = (64, 64)
        (limit.report.figures.processors, limit.report.figures.machineBusy, limit.report.figures.slotsFull) = (
            4, 97, 98
        )
        change(&limit)
        return limit
    }

    private static func names(_ waiting: Int) -> NameReport {
        var names = NameReport()
        names.waiting = waiting
        return names
    }

    private static let lines: [(RunLimit, String)] = [
        (limit(.starting), "the workers are starting"),
        (limit(.nothing), "nothing holds the run back for long"),
        (limit(.paused) { $0.isBatchPaused = true }, "limited by a pause (prefetch-coord resume): the batch is paused"),
        (limit(.fault) { $0.report.trouble = "no\u{1B}[2J space" }, "limited by a local fault: no\\x1b[2J space"),
        (
            limit(.list) { ($0.report.inFlight, $0.report.retrying) = (3, 1) },
            "limited by the list: nothing is left to claim, 3 in flight, 1 before their next try"
        ),
        (
            limit(.list) { $0.list = .feeding },
            "limited by the list: workers take URLs faster than they are queued"
        ),
        (limit(.redis) { $0.report.figures.redisLongest = 230 }, "limited by Redis: it answers after 230 ms"),
        (
            limit(.disk) { $0.report.figures.fileOldest = 3_200 },
            "limited by the disk (--cache): a file call has not returned for 3.2 s"
        ),
        (
            limit(.disk) { $0.report.figures.fileBusy = 70 },
            "limited by the disk (--durability): file calls take 70% of the time of the checks"
        ),
        (
            limit(.checking) { $0.report.figures.checkCPU = 310 },
            "limited by this machine's processors for checking (--validate): 4 processors 97% busy; checking takes 310% of one"
        ),
        (
            limit(.processor) { ($0.report.figures.machineBusy, $0.report.figures.transferCPU) = (30, 96) },
            "limited by this machine's processors for transfers (--workers): 4 processors 30% busy; "
                + "a thread of transfers takes 96% of one"
        ),
        (
            limit(.politeness) { limit in
                (limit.report.waitingForHost, limit.workers, limit.allWorkers) = (1_412, 3, 4)
                limit.report.figures.hostWaits = [
                    HostWait(host: "a.example", reason: .rate, count: 1_400),
                    HostWait(host: "b.example", reason: .backOff, count: 12),
                ]
            },
            "limited by politeness (--rate-per-host), 3 of 4 workers: 1,412 URLs wait for their hosts, "
                + "a.example 1,400 (--rate-per-host), b.example 12 (back-off)"
        ),
        (
            limit(.resolver) { $0.report.names = names(45) },
            "limited by the resolver (--dns-servers): 45 names wait for it"
        ),
        (
            limit(.rate) { $0.report.figures.received = 1_250_000 },
            "limited by the configured rate (--limit-rate): it holds transfers back at 1.3 MB/s"
        ),
        (
            limit(.servers) { $0.report.figures.answering = 87 },
            "limited by the servers' answers (--max-concurrent-downloads): 64 slots in use 98% of the time, "
                + "87% of it before the first byte"
        ),
        (
            limit(.link) { $0.report.figures.received = 12_000_000 },
            "limited by the link or the servers' sending rate (--max-concurrent-downloads): "
                + "64 slots in use 98% of the time, receiving, 12.0 MB/s in all"
        ),
        (
            limit(.workers) { ($0.workers, $0.allWorkers) = (0, 0) },
            "limited by the workers (prefetch-worker): none sends a heartbeat"
        ),
    ]

    @Test("Every cause has its sentence, with the figures and the option that changes it")
    func sentences() {
        for (limit, text) in Self.lines { #expect(LimitText.line(limit) == text) }
        #expect(Set(Self.lines.map(\.0.cause)) == Set(LimitCause.allCases))
    }

    @Test("As JSON: cause, detail, option and workers; null without a running batch")
    func json() {
        #expect((nil as RunLimit?).json.text == "null")
        #expect(
            Self.limit(.resolver) { $0.report.names = Self.names(2) }.json.text
                == #"{"cause":"resolver","detail":"2 names wait for it","option":"--dns-servers","workers":2,"of_workers":2}"#
        )
    }

    private func load(_ limit: RunLimit?) -> WorkerLoad {
        var load = WorkerLoad()
        (load.workers, load.report.inFlight, load.limit) = (2, 64, limit)
        return load
    }

    private let status = BatchStatus(
        id: "b", state: .running, total: 100, counts: PrefetchCounts(), created: 1, ended: 0, at: 2)

    @Test("Live lines have it under the bar; log lines tell it when the cause changes, and not again")
    func progress() {
        let servers = Self.limit(.servers) { $0.report.figures.answering = 87 }
        let frame = InlineFrame.lines(status, load(servers), ProgressRate(), width: 200, isUnicode: false)
        #expect(frame.count == 4 && frame[1] == "  " + LimitText.line(servers))
        #expect(InlineFrame.lines(status, load(nil), ProgressRate(), width: 200, isUnicode: false).count == 3)
        var lines = ProgressLines()
        func line(_ limit: RunLimit?) -> String { lines.line(for: status, load(limit)) }
        #expect(line(servers).contains(" limit=servers why=\"64 slots in use 98% of the time, 87% "))
        #expect(!line(Self.limit(.servers) { $0.report.figures.answering = 90 }).contains("limit="))
        #expect(line(Self.limit(.fault) { $0.report.trouble = "a \"b\"" }).hasSuffix(" limit=fault why=\"a 'b'\""))
        #expect(!line(nil).contains("limit="))
    }

    @Test("Metrics have the cause of the run, workers by cause, and seconds by batch and cause")
    func metrics() {
        var queue = QueueSnapshot()
        var status = status
        status.limits.add(.servers, milliseconds: 2_500)
        queue.batches = [status]
        var report = WorkerReport()
        (report.limit, report.inFlight) = (.servers, 3)
        queue.workers = ["a": .init(id: "a", report, leaseLeft: 9_000)]
        let text = MetricFormat.prometheus.text(QueueMetrics.families(queue, nil, took: 0), queue: "q")
        for line in [
            #"prefetch_limit_info{queue="q",cause="servers",option="--max-concurrent-downloads"} 1"#,
            #"prefetch_limited_workers{queue="q",cause="servers"} 1"#,
            #"prefetch_limited_workers{queue="q",cause="list"} 0"#,
            #"prefetch_limit_seconds_total{queue="q",batch="b",cause="servers"} 2.5"#,
        ] { #expect(text.contains(line + "\n"), "\(line)") }
    }
}
