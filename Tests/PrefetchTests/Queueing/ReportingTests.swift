import Redis
import Testing
import WebImage

@testable import Prefetch

@Suite("Reporting outcomes", .timeLimit(.minutes(5)))
struct ReportingTests {
    @Test("The first outcome of a URL counts, in the batch's and in the worker's counts, and no later one")
    func firstWrite() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [4])
        try await f.join("w", "v")
        let job = try await f.claim("w", 1)[0].job
        let part = QueueFixture.report(job, [.downloaded, nil, .badImage], isFinal: false)
        let first = try await f.queue.reports.send([part, part], worker: "w").map(\.counted)
        #expect(first[0]?.map(\.position) == [0, 2] && first[0]?.map(\.outcome) == [.downloaded, .badImage])
        #expect(first[1]?.isEmpty == true)
        // Somebody else who has the job too, as after a reap: settles what is left, changes nothing else.
        let rest = QueueFixture.report(job, [.hit, .hit, .hit, .downloaded])
        #expect(try await f.queue.reports.send([rest], worker: "v")[0].counted?.map(\.position) == [1, 3])
        #expect(try await f.queue.results.outcomes(of: "b", range: 0..<6) == [1, 2, 10, 1, 0, 0])
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(status.state == .done && status.counts.finished == 4 && status.counts.skipped == 1)
        #expect(status.counts[.downloaded] == 2 && status.counts[.hit] == 1 && status.counts[.badImage] == 1)
        #expect(status.counts.bytes == 200)
        let workers = try await f.queue.results.workerCounts(of: "b")
        #expect(workers["w"]?.finished == 2 && workers["w"]?.bytes == 100)
        #expect(workers["v"]?.finished == 2 && workers["v"]?.bytes == 100)
        #expect(try await f.findings("b") == [])
    }

    @Test("Every outcome is counted under its own name", arguments: PrefetchOutcome.allCases)
    func outcomes(_ outcome: PrefetchOutcome) async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [256])
        try await f.join("w")
        let job = try await f.claim("w", 1)[0].job
        #expect(try await f.finish(job, "w", outcome) == 256)
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(status.counts[outcome] == 256 && status.counts.skipped == (outcome.isSkipped ? 256 : 0))
        #expect(try await f.findings("b") == [])
    }

    @Test("Jobs of several batches are reported together, more of one than fit a call, and each counts by itself")
    func together() async throws {
        let f = try await QueueFixture()
        try await f.fill("a", sizes: Array(repeating: 3, count: 20))
        try await f.fill("b", sizes: [2, 256])
        try await f.fill("c", sizes: [2])
        try await f.join("w", "v")
        let claims = try await f.claim("w", 1, count: 32)
        #expect(claims.count == 23)
        _ = try await f.queue.batches.cancel(batch: "c")
        // The first job of `a` has an outcome already, the last one keeps an open URL.
        let early = try #require(claims.first { $0.job.name == "a:0:3" }).job
        _ = try await f.queue.reports.send([QueueFixture.report(early, [nil, .timeout], isFinal: false)], worker: "v")
        let reports = claims.map { claim in
            var outcomes = [PrefetchOutcome?](repeating: .downloaded, count: claim.job.entries.count)
            if claim.job.batch == "b" { outcomes[1] = .badImage }
            if claim.job.name == "a:57:3" { outcomes[2] = nil }
            return QueueFixture.report(claim.job, outcomes) { if $0.outcome == .badImage { $0.list = "http://h/bad" } }
        }
        let first = try await f.queue.reports.send(reports, worker: "w").map(\.counted)
        for (claim, first) in zip(claims, first) {
            switch claim.job.name {
            case "a:0:3": #expect(first?.map(\.position) == [0, 2])
            case "a:57:3": #expect(first?.map(\.position) == [0, 1])
            case "c:0:2": #expect(first == nil)
            default: #expect(first?.map(\.position) == Array(0..<claim.job.entries.count))
            }
        }
        let again = try await f.queue.reports.send(reports, worker: "w").map(\.counted)
        #expect(zip(claims, again).allSatisfy { $0.job.batch != "a" ? $1 == nil : $1?.isEmpty == true })
        let a = try #require(try await f.queue.batches.status(of: "a"))
        #expect(a.state == .running && a.counts.finished == 59 && a.counts.skipped == 1 && a.counts.bytes == 5800)
        let b = try #require(try await f.queue.batches.status(of: "b"))
        #expect(b.state == .done && b.counts.finished == 258 && b.counts.skipped == 2 && b.counts.bytes == 25_600)
        #expect(try await f.queue.results.workerCounts(of: "a")["w"]?.finished == 58)
        let listed = try await f.queue.failedURLs.listed(["http://h/bad", "http://h/good"])
        #expect(listed.keys.sorted() == [0] && listed[0]?.count == 2)
        // What it has not is somebody else's: the open URL's job is on the list again, no other.
        #expect(
            try await f.redis("HKEYS", f.keys.owned(by: "w")).array?.compactMap(\.string).sorted() == ["#jobs", "#seq"])
        #expect(try await f.claim("v", 1, count: 4).map(\.job.name) == ["a:57:3"])
        #expect(try await f.findings("a", "b", "c") == [])
    }

    @Test("Sizes go with the URL they belong to, also past 2 GiB")
    func sizes() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [3])
        try await f.join("w")
        let job = try await f.claim("w", 1)[0].job
        var report = QueueFixture.report(job, [.downloaded, nil, .downloaded], isFinal: false)
        report.settled[0].bytes = 3_000_000_000
        report.settled[1].bytes = 7
        _ = try await f.queue.reports.send([report], worker: "w")
        report.settled[0].bytes = 9
        _ = try await f.queue.reports.send([report], worker: "w")
        #expect(try await f.field("bytes", of: "b") == "3000000007")
        #expect(try await f.findings("b") == [])
    }

    @Test("A batch says where it was: two marks eight seconds apart, both of now after a break")
    func marks() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [2, 1, 1, 1])
        try await f.join("w")
        let jobs = try await f.claim("w", 1, count: 4).map(\.job)
        func marks() async throws -> [ProgressMark] {
            try await f.queue.batches.status(of: "b")?.marks ?? []
        }
        #expect(try await marks() == [])
        try await f.finish(jobs[0], "w")
        let status = try #require(try await f.queue.batches.status(of: "b"))
        let first = ProgressMark(at: status.last, finished: 2, skipped: 0, bytes: 200)
        #expect(status.marks == [ProgressMark(at: status.created, finished: 0, skipped: 0, bytes: 0), first])
        // Nothing is written before eight seconds are over.
        try await f.finish(jobs[1], "w", .timeout)
        #expect(try await marks() == status.marks)
        let past = ProgressMark(at: status.last - 9_000, finished: 1, skipped: 1, bytes: 7)
        try await f.redis("HSET", f.keys.batch("b"), "pace", "1 0 0 0 \(past.at) 1 1 7")
        try await f.finish(jobs[2], "w", .timeout)
        let found = try await marks()
        #expect(
            found.first == past && found.last?.finished == 4 && found.last?.skipped == 2 && found.last?.bytes == 200)
        // A break says nothing about now; neither does what nobody wrote so.
        for text in ["1 0 0 0 \(status.last - 60_000) 4 2 200", "x", "1 2 3"] {
            try await f.redis("HSET", f.keys.batch("b"), "pace", text, "created", "1")
            #expect(try await marks().count == (text.count > 9 ? 2 : 0))
        }
        try await f.redis("HSET", f.keys.batch("b"), "pace", "1 0 0 0 \(status.last - 60_000) 4 2 200")
        try await f.finish(jobs[3], "w")
        let last = try await marks()
        #expect(last.count == 2 && last[0] == last[1] && last[0].finished == 5)
    }

    @Test("Details are kept up to their limit, for first outcomes only")
    func details() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [4], fields: [("details", "2")])
        try await f.join("w")
        let job = try await f.claim("w", 1)[0].job
        let report = QueueFixture.report(job, [.hit, .badImage, .dns, .timeout], keepDetails: 2) {
            $0.failure?.httpStatus = 200
        }
        let again = QueueFixture.report(job, [.httpError, .httpError], keepDetails: 1000) {
            $0.failure?.detail = "late"
        }
        _ = try await f.queue.reports.send([report, again], worker: "w")
        let details = try await f.queue.results.details(of: "b", indices: [0, 1, 2, 3])
        #expect(details.keys.sorted() == [1, 2])
        #expect(
            details[1]
                == FailureDetail(
                    line: 2, url: "http://h/b/1", outcome: .badImage, httpStatus: 200, tries: 1, detail: "no"))
        #expect(try await f.findings("b") == [])
    }

    @Test("The failed set changes for first outcomes only, and remembers since when and how often")
    func failedSet() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [3])
        try await f.fill("c", sizes: [1])
        try await f.join("w")
        let jobs = try await f.claim("w", 1, count: 2).map(\.job)
        try await f.redis("SADD", f.keys.failed, "old", "kept")
        let first = QueueFixture.report(jobs[0], [.httpError, .downloaded], isFinal: false) {
            guard $0.position == 0 else { return $0.unlist = "old" }
            $0.list = "http://x/"
            $0.failure?.httpStatus = 404
        }
        let late = QueueFixture.report(jobs[0], [.hit, .badImage], isFinal: false) {
            if $0.position == 0 { $0.unlist = "http://x/" } else { $0.list = "kept2" }
        }
        _ = try await f.queue.reports.send([first, late, first], worker: "w")
        #expect(
            try await f.redis("SMEMBERS", f.keys.failed).array?.compactMap(\.string).sorted() == ["http://x/", "kept"])
        let entry = try #require(try await f.queue.failedURLs.listed(["http://x/"])[0])
        #expect(entry.count == 1 && entry.httpStatus == 404 && entry.outcome == .httpError && entry.batch == "b")
        #expect(entry.first == entry.last && entry.first > 0 && entry.detail == "no")
        let other = QueueFixture.report(jobs[1], [.badImage]) { $0.list = "http://x/" }
        _ = try await f.queue.reports.send([other], worker: "w")
        let twice = try #require(try await f.queue.failedURLs.listed(["http://x/"])[0])
        #expect(twice.count == 2 && twice.first == entry.first && twice.outcome == .badImage && twice.batch == "c")
        #expect(try await f.findings("b", "c") == [])
    }

    @Test("The last outcome completes the batch, once")
    func completion() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 1])
        try await f.join("w")
        let jobs = try await f.claim("w", 1, count: 2).map(\.job)
        try await f.finish(jobs[0], "w")
        #expect(try await f.field("state", of: "b") == "running")
        #expect(try await f.finish(jobs[1], "w") == 1)
        #expect(try await f.field("state", of: "b") == "done")
        let ended = try await f.field("ended", of: "b")
        #expect(try await f.finish(jobs[1], "w") == nil)
        #expect(try await f.field("ended", of: "b") == ended)
        #expect(try await f.queue.catalog.running().isEmpty)
        #expect(
            try await f.redis("HKEYS", f.keys.owned(by: "w")).array?.compactMap(\.string).sorted() == ["#jobs", "#seq"])
        #expect(try await f.findings("b") == [])
    }

    @Test("A report from a worker that was reaped still counts, and the job that went back finds it settled")
    func staleOwner() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [2])
        try await f.join("w", "v")
        let job = try await f.claim("w", 1)[0].job
        try await f.expire("w")
        #expect(try await f.queue.workers.reap() == .reaped(worker: "w", jobs: 1))
        #expect(try await f.finish(job, "w", .downloaded) == 2)
        #expect(try await f.field("state", of: "b") == "done")
        #expect(try await f.queue.results.workerCounts(of: "b")["w"]?.finished == 2)
        #expect(try await f.claim("v", 1).isEmpty)
        #expect(try await f.redis("EXISTS", f.keys.bell, f.keys.jobs("b")).int == 0)
        #expect(try await f.findings("b") == [])
    }

    @Test("A report of a batch that is not there says so")
    func unknown() async throws {
        let f = try await QueueFixture()
        let job = QueueFixture.jobs("none", sizes: [1])[0]
        #expect(try await f.finish(job, "w") == nil)
        #expect(try await f.redis("KEYS", f.keys.root + "*").array?.isEmpty == true)
    }

    @Test("Refused addresses are noted once each")
    func refusals() async throws {
        let f = try await QueueFixture()
        try await f.open()
        try await f.queue.reports.noteRefusal(batch: "b", host: "10.0.0.2", message: "first")
        try await f.queue.reports.noteRefusal(batch: "b", host: "10.0.0.2", message: "second")
        try await f.queue.reports.noteRefusal(batch: "b", host: "10.0.0.1", message: "other")
        let found = try await f.queue.reports.refusals(of: "b")
        #expect(found.map(\.host) == ["10.0.0.1", "10.0.0.2"] && found.map(\.message) == ["other", "first"])
    }
}
