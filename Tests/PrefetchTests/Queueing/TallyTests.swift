import Redis
import Testing
import WebImage

@testable import Prefetch

@Suite("What dashboards add up", .timeLimit(.minutes(1)))
struct TallyTests {
    /// A report with its tally, as a worker sends it.
    private func report(_ job: PrefetchJob, _ outcomes: [PrefetchOutcome?], status: Int = 404) -> PrefetchQueue.Report {
        var report = QueueFixture.report(job, outcomes, isFinal: false) { item in
            if item.outcome == .httpError { item.failure?.httpStatus = status }
        }
        report.tally = ReportTally(report.settled, of: job.entries)
        return report
    }

    @Test("Statuses and hosts are counted once, however often a report comes, and agree with the batch")
    func once() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [5])
        try await f.join("w")
        let job = try await f.claim("w", 1)[0].job
        let first = report(job, [.downloaded, .httpError, .httpError])
        for _ in 0..<3 { _ = try await f.queue.report([first], worker: "w") }
        _ = try await f.queue.report([report(job, [nil, nil, nil, .httpError], status: 503)], worker: "w")
        let look = try #require(try await f.queue.look(at: "b"))
        #expect(look.httpStatuses == [404: 2, 503: 1])
        #expect(look.hosts == ["h": BatchLook.Host(finished: 4, skipped: 3, bytes: 100)])
        #expect(
            look.counts["w"]?.finished == 4 && look.status.counts.finished == 4 && look.status.counts[.httpError] == 3)
        #expect(
            look.workers["w"]?.facts["state"] == "running" && look.workers["w"].map { $0.leaseLeft > 50_000 } == true)
        // Half of it is new: which half is not looked at, and shows as "other".
        _ = try await f.queue.report([report(job, [nil, nil, nil, .httpError, .hit])], worker: "w")
        let end = try #require(try await f.queue.look(at: "b"))
        #expect(end.status.state == .done && end.hosts["h"]?.finished == 4 && end.status.counts.finished == 5)
        #expect(try await f.findings("b") == [])
        // With the batch it goes.
        #expect(try await f.queue.remove(batch: "b") == .removed)
        #expect(try await f.redis("EXISTS", f.keys.hosts("b")).int == 0)
        #expect(try await f.queue.look(at: "b") == nil)
    }

    @Test("A batch of a thousand hosts keeps 256 of them, of one report 16")
    func bounded() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [PrefetchJob.maxCount])
        let entries = (0..<1000).map { PrefetchJob.Entry(line: $0 + 1, url: "http://h\($0).example/") }
        try await f.join("w")
        let job = try await f.claim("w", 1)[0].job
        var whole = report(job, Array(repeating: .hit, count: 20))
        whole.tally = ReportTally(whole.settled, of: entries)
        _ = try await f.queue.report([whole], worker: "w")
        #expect(try await f.redis("HLEN", f.keys.hosts("b")).int == 16)
        for index in 20..<256 {
            var one = report(job, Array(repeating: nil, count: index) + [.hit])
            one.tally = ReportTally(one.settled, of: (0..<256).map { entries[$0 == index ? 300 + index : $0] })
            _ = try await f.queue.report([one], worker: "w")
        }
        #expect(try await f.redis("HLEN", f.keys.hosts("b")).int == 252)
        try await f.fill("c", sizes: [20])
        for host in 0..<250 { try await f.redis("HSET", f.keys.hosts("c"), "x\(host)", "1 0 0") }
        let next = try await f.claim("w", 2)[0].job
        var more = report(next, Array(repeating: .hit, count: 20))
        more.tally = ReportTally(more.settled, of: entries)
        _ = try await f.queue.report([more], worker: "w")
        #expect(try await f.redis("HLEN", f.keys.hosts("c")).int == 256)
        #expect(try await f.queue.status(of: "c")?.counts.finished == 20)
    }

    @Test(
        "The host of a URL, with its port and without its user",
        arguments: [
            ("http://A.example/x", "a.example"), ("https://u:p@h:81?q", "h:81"), ("http://[::1]:8/", "[::1]:8"),
            ("no url", nil), ("http:///x", nil), ("http://ü.example/", nil),
        ] as [(String, String?)])
    func host(_ url: String, _ host: String?) {
        #expect(ReportTally.host(of: url) == host)
    }

    @Test("The commands of a look do not depend on the number of URLs")
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
            _ = try await f.queue.look(at: id)
            let began = ContinuousClock.now
            let look = try #require(try await f.queue.look(at: id))
            let took = ContinuousClock.now - began
            #expect(look.status.total == total && look.counts["w"]?.finished == total)
            costs.append(Int(took / .microseconds(1)))
        }
        #expect(costs[1] < 20_000, "\(costs)")
    }
}
