import Prefetch
import WebImage

@testable import PrefetchCommands

/// A batch in the middle of its run, with a frozen clock: the same frames for ever.
enum DashFixture {
    static let start = 1_795_000_000_000

    /// A million URLs, three workers and one that was lost, six causes, names of every kind.
    static func state(seconds: Int = 40) -> DashState {
        var state = DashState()
        state.id = "laion-art-7"
        state.place = "redis unix"
        for second in 0...seconds { state.take(reading(second)) }
        return state
    }

    static func reading(_ second: Int) -> DashReading {
        let at = start + 900_000 + second * 1000
        var reading = DashReading()
        reading.snapshot = snapshot(second, at: at)
        var queue = QueueSnapshot()
        queue.at = at
        queue.batches = [reading.snapshot?.status, batch("app-icons-v12", 48_000, at: at)].compactMap { $0 }
        queue.hosts = hosts(second, at: at)
        (queue.failedURLs, queue.usedMemory) = (1_907, 42_991_616)
        reading.queue = queue
        if second >= 20 {
            reading.ends["node-b:978"] = DashState.WorkerEnd(isLost: true, ended: at - 8_000, returned: 3)
        }
        reading.failures = [
            7: FailureDetail(
                line: 8, url: "https://pics.c.example/9f/2201.jpg", outcome: .truncated, tries: 3,
                detail: "48,211 of 71,004 bytes"),
            9: FailureDetail(
                line: 10, url: "https://例え.テスト/絵.jpg\u{202E}\u{1B}[2J", outcome: .httpError, httpStatus: 404,
                tries: 1,
                detail: "HTTP 404"),
            11: FailureDetail(
                line: 12, url: "https://xn--r8jz45g.xn--zckzah/\u{05D0}\u{05D1}/e\u{301}👩‍👧🇩🇪.png", outcome: .timeout,
                tries: 3,
                detail: String(decoding: [0x6E, 0x6F, 0xFF, 0xFE, 0x20], as: UTF8.self) + "no byte for 15 s"),
        ]
        return reading
    }

    /// One that gives no answer from the 21st second on, and a slow one.
    private static func hosts(_ second: Int, at: Int) -> [HostProblem] {
        let silent = "silent \(start + 981_000) \(start + 921_000) 20 -1003 cannot be reached"
        let slow = "slow \(at + 30_000) \(start + 900_000) 4 2200 300"
        return [second > 20 ? ("old.e.example", silent) : nil, ("img.b.example", slow)].compactMap { $0 }
            .compactMap { HostProblem(host: $0.0, note: $0.1, now: at) }
    }

    /// The batch paused with a priority of its own, and a worker beside it.
    static func paused(_ second: Int) -> DashReading {
        var reading = reading(second)
        reading.snapshot?.status.isPaused = true
        reading.snapshot?.status.priority = .high
        reading.snapshot?.workers["node-a:4122"]?.report.isPaused = true
        reading.snapshot?.workers["node-b:977"]?.report.trouble = "no space left on device"
        return reading
    }

    private static func snapshot(_ second: Int, at: Int) -> BatchSnapshot {
        // A wave, so that the graphs have a form.
        let done = (0..<second).reduce(588_000) { $0 + 600 + ($1 % 7) * 20 }
        var status = batch("laion-art-7", 1_000_000, at: at)
        status.state = .running
        status.ended = 0
        var counts = PrefetchCounts()
        let skipped: [(PrefetchOutcome, Int)] = [
            (.httpError, 2_840), (.timeout, 871), (.truncated, 233), (.badImage, 162), (.tls, 31), (.dns, 27),
        ]
        for (outcome, count) in skipped { counts[outcome] = count }
        counts[.hit] = 38_114
        counts[.notModified] = 4_410
        counts[.downloaded] = done - counts.finished
        counts.bytes = counts[.downloaded] * 94_000
        status.counts = counts
        status.last = at
        status.fetches = fetches
        var snapshot = BatchSnapshot(at: at, status: status)
        snapshot.httpStatuses = [404: 2_310, 503: 530]
        snapshot.waitingJobs = 64
        snapshot.counts = workers(counts)
        for (number, name) in ["node-a:4121", "node-a:4122", "node-b:977", "node-b:978"].enumerated() {
            if number == 3 && second >= 20 { continue }
            snapshot.workers[name] = WorkerRecord(
                id: name,
                WorkerReport(fields: [
                    "state": "running", "in_flight": "32", "max_concurrent_downloads": "32", "lease": "15000",
                    "rss": String(148_000_000 - number * 1_000_000), "cpu": String(second * (410 - number * 20)),
                    "checking": String(number + 2), "waiting_for_host": "0", "retrying": "70", "cache": "c1",
                    "beat": String(at - number), "limit": number == 2 ? "link" : "servers", "slots_full": "100",
                    "answering": String(80 + number),
                    "cache_images": String(571_930 + second - number), "cache_bytes": "53400000000",
                    "cache_limit": "200000000000",
                ]), leaseLeft: 14_000 - number * 200)
        }
        snapshot.hosts = [
            "cdn.a.example": .init(finished: done / 3, skipped: 201, bytes: 18_400_000_000),
            "img.b.example": .init(finished: done / 7, skipped: 353, bytes: 8_400_000_000),
            "写真.example": .init(finished: done / 10, skipped: 1_160, bytes: 6_100_000_000),
            "old.e.example": .init(finished: 2_100, skipped: 1_743, bytes: 0),
        ]
        return snapshot
    }

    /// Two thousand transfers, most of them short, some over a new connection.
    private static let fetches: FetchTally = {
        var tally = FetchTally()
        for index in 0..<2000 {
            var timing = DownloadedImage.Timing()
            timing.reusedConnection = index % 17 != 0
            if !timing.reusedConnection { (timing.nameLookup, timing.connect, timing.tls) = (0.003, 0.021, 0.038) }
            timing.firstByte = 0.06 + Double(index % 50) / 1000
            timing.total =
                timing.firstByte + Double(index % 100 + 1) / 1000 + (index % 25 == 0 ? Double(index) / 500 : 0)
            let format: ImageFormat = index % 9 == 0 ? .png : index % 14 == 0 ? .webp : index % 120 == 1 ? .gif : .jpeg
            tally.add(
                FetchTally.Fetch(format: format, timing: timing, tries: index % 40 == 0 ? 2 : 1), outcome: .downloaded,
                bytes: (index % 100 + 1) * (index % 100 + 1) * 40)
        }
        return tally
    }()

    /// The batch's counts, dealt out to four workers.
    private static func workers(_ whole: PrefetchCounts) -> [String: PrefetchCounts] {
        var left = whole
        var counts: [String: PrefetchCounts] = [:]
        for (name, part) in [("node-b:978", 5), ("node-b:977", 3), ("node-a:4122", 2)] {
            var own = PrefetchCounts()
            for outcome in PrefetchOutcome.allCases {
                own[outcome] = left[outcome] / part
                left[outcome] -= own[outcome]
            }
            own.bytes = left.bytes / part
            left.bytes -= own.bytes
            counts[name] = own
        }
        counts["node-a:4121"] = left
        return counts
    }

    private static func batch(_ id: String, _ total: Int, at: Int) -> BatchStatus {
        var counts = PrefetchCounts()
        counts[.downloaded] = total
        return BatchStatus(
            id: id, state: .done, total: total, counts: counts, created: start, ended: start + 61_000, at: at)
    }

    /// UTC, whatever the machine's zone.
    static func clock(_ milliseconds: Int) -> String {
        String(UTCTime.text(milliseconds: milliseconds).dropFirst(11).dropLast())
    }

    static func frame(_ state: DashState, _ columns: Int, _ rows: Int, isUnicode: Bool = true) -> [StyledLine] {
        DashFrame(
            state: state, columns: columns, rows: rows, glyphs: DashGlyphs(isUnicode: isUnicode), clock: clock
        ).lines()
    }
}
