import PrefetchModel
import TestSupport
import Testing
import WebImage

@testable import Prefetch
@testable import PrefetchCommands
@testable import Queue

/// What people and programs read, made of fixed records: `Tests/Golden/answers`.
@Suite("What is answered", .timeLimit(.minutes(5)))
struct AnswerTests {
    private let snapshot: BatchSnapshot
    private static let at = DashFixture.start + 940_000

    init() throws {
        var snapshot = try #require(DashFixture.reading(40).snapshot)
        snapshot.status.listPath = "/data/urls.txt"
        snapshot.status.limits.add(.servers, milliseconds: 90_000)
        snapshot.status.limits.add(.politeness, milliseconds: 30_000)
        self.snapshot = snapshot
    }

    /// A member of JSON a line.
    private static func lines(_ object: some Shown) -> [String] { lines(object.json) }

    private static func lines(_ json: JSONText) -> [String] {
        json.text.replacing(",\"", with: ",\n\"").split(separator: "\n").map(String.init)
    }

    private static func expect(_ lines: [String], is name: String) throws {
        let text = lines.map { $0 + "\n" }.joined().replacing(PrefetchVersion, with: "VERSION")
        try Golden.expect(text, is: "answers/\(name)")
    }

    private static let failures: [FailureDetail] = {
        var first = FailureDetail(
            line: 7, url: "https://u:secret@a.example/1.jpg", outcome: .httpError, httpStatus: 404, tries: 1,
            detail: "HTTP 404")
        first.ended = at
        let second = FailureDetail(
            line: 9, url: "https://b.example/\u{202E}2.jpg", outcome: .refused, reason: .closedNetwork, tries: 1,
            detail: "10.0.0.1 is a private address")
        var third = FailureDetail(
            line: 12, url: "https://a.example/3.jpg", outcome: .timeout, tries: 3, detail: "no byte for 15 s")
        third.isKept = false
        let fourth = FailureDetail(line: 13, url: "no url", outcome: .invalidURL, detail: "no scheme")
        return [first, second, third, fourth]
    }()

    @Test("A batch: its object, its summary and its lines")
    func batch() throws {
        var done = snapshot.status
        (done.state, done.ended, done.endedBy) = (.cancelled, Self.at, .maxFailures)
        done.settings.turn.maxFailures = .percent(5)
        done.retryOf = "laion-art-6"
        var open = snapshot.status
        (open.isPaused, open.deadline) = (true, Self.at + 60_000)
        (open.settings.turn.finishAt, open.settings.turn.slot) = (.percent(99), "home")
        let load = WorkerLoad(snapshot.workers)
        try Self.expect(
            Self.lines(BatchAnswer(snapshot.status, snapshot))
                + Self.lines(BatchAnswer(done))
                + [snapshot.status, done, open].map { BatchText.line($0, load) }
                + BatchText.summary(done) + [BatchText.limits(open) ?? "", BatchText.continuing(open)], is: "batch")
    }

    private static let gone: [WorkerRecord] = {
        var report = WorkerReport(fields: [
            "host": "node-c", "pid": "7", "finished": "1200", "skipped": "3", "bytes": "5000000",
        ])
        report.names = NameReport("1204 1200 2 1 1 30 64 12 0")
        report.since = start
        var lost = WorkerRecord(id: "node-c:7", report, leaseLeft: 0)
        (lost.state, lost.leaseLeft, lost.ended) = (.lost, nil, at)
        var held = WorkerReport(fields: ["lease": "15000", "trouble": "no space left", "warning": "slow \u{1B}disk"])
        held.isPaused = true
        return [WorkerRecord(id: "node-d:1", held, leaseLeft: -2_000), lost]
    }()
    private static let start = DashFixture.start

    @Test("Workers: their objects and their lines")
    func workers() throws {
        let records = snapshot.workers.sorted { $0.key < $1.key }.map(\.value) + Self.gone
        try Self.expect(
            records.flatMap { Self.lines($0) } + SheetTable(records).lines, is: "workers")
    }

    private var queue: QueueSnapshot {
        var queue = DashFixture.reading(40).queue ?? QueueSnapshot()
        queue.batches[0] = snapshot.status
        queue.workers = snapshot.workers
        queue.running = [
            QueueSnapshot.RunningBatch(id: "laion-art-7", waitingJobs: 64),
            QueueSnapshot.RunningBatch(id: "old", broken: "2 open URLs are in no job"),
        ]
        (queue.dead, queue.claimedJobs, queue.maxMemory, queue.lostWorkers) = (2, 6, 42_000_000, 1)
        queue.failedURLLimit.removed = 12
        queue.settings = QueueControl.QueueSettings(isPaused: true, concurrency: .fixed(8))
        return queue
    }

    @Test("The health of a queue, its limit and its caches")
    func health() throws {
        let limit = RunLimit(workers: snapshot.workers, batches: [snapshot.status])
        let health = Health(queue: queue, lost: ["node-c:7"], statuses: [snapshot.status])
        let about = QueueAnswer(name: "default", settings: queue.settings)
        try Self.expect(
            Self.lines(health)
                + health.lines(noWorker: true)
                + Self.lines(limit)
                + Self.lines(CacheLoad(snapshot.workers.values.map(\.report)).unlessUnknown)
                + [about.line(words: " --queue q") ?? ""], is: "health")
    }

    @Test("The page of metrics in both formats")
    func metrics() throws {
        var lines: [String] = []
        for format in MetricFormat.allCases {
            lines += format.text(QueueMetrics.families(queue, nil, took: 0.25), queue: "q").split(separator: "\n")
                .map(String.init)
        }
        // The versions of libraries are those of the machine.
        try Self.expect(lines.filter { !$0.hasPrefix("prefetch_build_info") }, is: "metrics")
    }

    @Test("Failures one by one, by cause and by host")
    func failuresByCategory() throws {
        var lines = Self.failures.flatMap { Self.lines($0) }
        for category in FailureCounts.Category.allCases {
            var counts = FailureCounts(by: category, of: "b")
            for failure in Self.failures { counts.note(failure) }
            lines += Self.lines(counts) + counts.sheet.lines + counts.sheet.notes
        }
        try Self.expect(lines, is: "failures")
    }

    @Test("What is known of a URL, and what a batch waits for")
    func why() throws {
        var facts = URLFacts(at: Self.at, listing: nil, image: nil, endings: [], batchesRead: 1, batchCount: 3)
        let none = URLFactsText(url: "https://a.example/1.jpg", facts: facts, cache: "./cache", queue: "default")
        facts.endings = [URLFacts.Ending(batch: snapshot.status, details: Self.failures)]
        facts.place = URLFacts.Place(
            batch: snapshot.status, line: 7, outcome: .downloaded,
            cache: BatchCache(id: "c1", host: "img-02", directory: "/srv/images"))
        let known = URLFactsText(url: "https://u:secret@a.example/1.jpg", facts: facts, cache: nil, queue: "default")
        var open = OpenURL(index: 4, line: 5, url: "https://a.example/5.jpg", state: .stalled, since: Self.at - 3_000)
        (open.worker, open.tries, open.host) = ("node-a:4121", 2, "a.example")
        var rest = OpenURL(index: 9, state: .notPushed)
        rest.detail = "1200"
        try Self.expect(
            Self.lines(none) + [none.unknown] + Self.lines(known) + known.lines
                + [open, rest].flatMap { Self.lines($0) + [OpenURLText.line($0, at: Self.at)] },
            is: "why")
    }

    @Test("Lines of a manifest, as JSON and as tables")
    func manifest() throws {
        var result = BatchResults.Line(line: 1, url: "https://u:secret@a.example/1.jpg", outcome: .downloaded)
        result.columns = [
            "caption": .text("=a, b"), "score": .json("-0.5"),
            "tags": .json("[\"a\u{202E}\",\t{\"u\": \"https:\\/\\/u:secret@a.example/\"}]"),
            "WIDTH": .json("null"),
        ]
        let image = ExportedLine.Image(
            path: "cache/v1/1.jpg", bytes: 1_200, sha256: String(repeating: "0a", count: 32), format: .jpeg, width: 64,
            height: 48, level: .decode,
            traits: ExportedLine.Traits(orientation: 6, frames: 1, hasAlpha: false, colorSpace: .rgb))
        var skipped = ExportedLine(BatchResults.Line(line: 2, url: "no url", outcome: .invalidURL))
        skipped.host = "img-02"
        let lines = [ExportedLine(result, image: image), skipped]
        let shard = ShardText(
            ["WIDTH", "caption", "score", "tags"].map { TypedColumn($0, .text) }, caption: "caption", image: "jpg",
            added: [])
        let samples = lines.map { shard.sample($0, key: "000000007") }
        var texts = lines.flatMap { Self.lines($0) }
        for form in [BatchTable.Form.commas, .tabs] {
            let table = BatchTable(form: form, columns: ["caption", "score", "tags", "url"])
            texts += [table.head] + lines.map(table.line)
        }
        texts.append(shard.columns.map { "\($0.name) \($0.kind.rawValue)" }.joined(separator: ", "))
        for sample in samples {
            for bytes in [sample.json, sample.row, sample.caption ?? []] {
                texts.append(String(decoding: bytes, as: UTF8.self))
            }
        }
        try Self.expect(texts, is: "manifest")
    }

    @Test("Events, findings and disagreements")
    func others() throws {
        let events: [PrefetchEvent] = [
            .progress(finishedCount: 1, totalCount: 2), .didFinish(totalCount: 2, skippedCount: 1),
            .completion(finishedCount: 2, skippedCount: 1),
        ]
        let finding = Finding(.warn, "proxy", "http_proxy is set", remedy: "--proxy env uses it")
        var findings = FsckFindings(most: 1)
        for message in ["7 URLs are in no job", "more"] {
            findings.add(BatchCheck.Finding(batch: "b", invariant: "I2", message: message))
        }
        let place = BatchCache(id: "c1", host: "img-02", directory: "/srv/images")
        let fsck = FsckAnswer(
            ids: ["b"], findings: findings, elsewhere: [("b", [place: 3])], dead: ([[1, 2]], 4),
            commands: [("remove it", "rm b")])
        try Self.expect(
            events.map { EventAnswer($0).json.text }
                + [RateEvents().event(snapshot.status, WorkerLoad(snapshot.workers)).json.text]
                + finding.lines + [finding.json.text]
                + fsck.sheet.lines + fsck.sheet.notes + [fsck.json.text], is: "others")
    }

    @Test("The page of a batch")
    func report() throws {
        var page = BatchPage(snapshot: snapshot)
        page.failures = Self.failures
        page.names = NameReport("1204 1200 2 1 1 30 64 12 0") ?? NameReport()
        try Self.expect([page.page.text], is: "report")
    }
}
