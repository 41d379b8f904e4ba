import Glibc
import Origin
import Prefetch
import TestSupport
import Testing
import WebImage

/// Lists whose URLs are all on one host, as a user runs them: what one costs the next.
@Suite("Lists of one host", .timeLimit(.minutes(5)))
struct HostListsTests {
    enum End: CaseIterable {
        case cancel, crawlDelay, pause, slot, deadline, maxFailures
    }

    private let count = 300
    /// With this rate what waits would take two minutes and a half.
    private let rate = ["--rate-per-host", "2"]

    private func origin(refuses: String? = nil) throws -> OriginServer {
        let origin = try OriginServer()
        let image = GeneratedImage.png(seed: 1, width: 16, height: 16)
        origin.setFallback { request in
            refuses.map { request.path.hasPrefix($0) } == true
                ? OriginResponse(status: 404) : OriginResponse(body: image)
        }
        origin.route("/robots.txt", OriginResponse(body: Array("User-agent: *\nCrawl-delay: 0.5".utf8)))
        return origin
    }

    private func times(_ origin: OriginServer, _ prefix: String) -> [Double] {
        origin.requests.filter { $0.path.hasPrefix("/\(prefix)/") }.map(\.time)
    }

    /// Submits the first list, and returns when a worker has asked for some of it and waits with the rest.
    private func begin(_ remote: RemoteBatch, _ origin: OriginServer, _ options: [String]) async throws -> ChildProcess
    {
        let words = ["--job-size", "16", "--window", "all", "--durability", "none"] + options
        try await remote.submit(origin.urls("old", count), as: "old", words)
        let worker = try #require(try await remote.workers(1, isBurst: false).first)
        await origin.waitForRequests(2)
        try await until {
            if try await remote.queue.batches.status(of: "old")?.state == .cancelled { return true }
            return try await remote.queue.workerRecords.all().contains { $0.report.waitingForHost > 200 }
        }
        return worker
    }

    @Test("set throttles a batch that runs, and ends it at another time")
    func live() async throws {
        let remote = try await RemoteBatch()
        let origin = try origin()
        try await remote.submit(
            origin.urls("old", count), as: "old", ["--rate-per-host", "10", "--job-size", "16"])
        let workers = try await remote.workers(1, isBurst: false)
        defer { withExtendedLifetime(workers) {} }
        let first = 5
        await origin.waitForRequests(first + 20)
        let before = times(origin, "old")
        #expect(before[first + 19] - before[first] < 5, "10 a second")
        try await remote.done(["set", "old", "--rate-per-host", "2", "--max-per-host", "1"])
        let began = clockSeconds()
        /// The last six requests, once most of the pauses between them are longer than the old rate's. A machine that
        /// is busy sees one late, and the one behind it early.
        func slow() -> [Double]? {
            let last = Array(times(origin, "old").filter { $0 > began }.suffix(6))
            let pauses = zip(last, last.dropFirst()).map { $1 - $0 }.sorted()
            return pauses.count == 5 && pauses[2] > 0.4 ? last : nil
        }
        try await until { slow() != nil }
        let after = try #require(slow())
        // Heartbeat and claim, on a machine that is busy.
        #expect(after[0] - began < 10, "\(after)")
        #expect(after[5] - after[0] > 1.5, "\(after)")
        let options = try #require(try await remote.queue.batches.status(of: "old")).options
        #expect(options.requests.ratePerHost == 2 && options.requests.maxPerHost == 1)
        try await remote.done(["set", "old", "--deadline", "1s"])
        try await until { try await remote.queue.batches.status(of: "old")?.state == .cancelled }
        #expect(try await remote.queue.batches.status(of: "old")?.endedBy == .deadline)
    }

    @Test(
        "The next list begins at once and runs at its own pace, however the one before it has ended",
        arguments: End.allCases)
    func next(end: End) async throws {
        let remote = try await RemoteBatch()
        let origin = try origin(refuses: end == .maxFailures ? "/old/" : nil)
        let options =
            switch end {
            case .cancel, .pause: rate
            case .crawlDelay: ["--robots"]
            case .slot: rate + ["--slot", "home"]
            case .deadline: rate + ["--deadline", "9s"]
            case .maxFailures: rate + ["--max-failures", "9"]
            }
        let worker = try await begin(remote, origin, options)
        switch end {
        case .cancel, .crawlDelay: try await remote.done(["cancel", "old", "--yes"])
        case .pause: try await remote.done(["pause", "old"])
        // The next list does it.
        case .slot: break
        case .deadline, .maxFailures:
            try await until { try await remote.queue.batches.status(of: "old")?.state == .cancelled }
        }
        let began = clockSeconds()
        try await remote.submit(origin.urls("new", 40), as: "new", end == .slot ? ["--slot", "home"] : [])
        try await until { try await remote.queue.batches.status(of: "new")?.state == .done }
        let times = times(origin, "new")
        // A heartbeat and a claim; the rest is for a machine that is busy. At the rate of the other list its URLs would take 20 s.
        #expect(times.count == 40 && times[0] - began < 10 && times[39] - times[0] < 10, "\(times.map { $0 - began })")
        #expect(try await remote.queue.batches.status(of: "new")?.counts[.downloaded] == 40)
        let ended = try #require(try await remote.queue.batches.status(of: "old"))
        #expect(ended.state == (end == .pause ? .running : .cancelled))
        #expect(ended.counts.finished - ended.counts[.cancelled] < 60, "\(ended.counts)")
        worker.signal(SIGKILL)
        _ = await worker.wait()
    }

    @Test("A list that was paused goes on at once when it is resumed")
    func resumed() async throws {
        let remote = try await RemoteBatch()
        let origin = try origin()
        let worker = try await begin(remote, origin, rate)
        try await remote.done(["pause", "old"])
        // What has not begun is on the list again.
        try await until {
            let records = try await remote.queue.workerRecords.all()
            return records.allSatisfy { $0.report.waitingForHost == 0 && $0.report.inFlight == 0 }
        }
        let (before, began) = (times(origin, "old").count, clockSeconds())
        try await remote.done(["resume", "old"])
        try await until { times(origin, "old").count >= before + 3 }
        // A heartbeat, a claim, and three requests two of which wait for half a second.
        #expect(times(origin, "old")[before + 2] - began < 10)
        worker.signal(SIGKILL)
        _ = await worker.wait()
    }

    @Test("A list without a rate is not slowed by one that has it, and that one keeps to it, over two workers")
    func beside() async throws {
        let remote = try await RemoteBatch()
        let origin = try origin()
        let worker = try await begin(remote, origin, rate + ["--max-per-host", "1"])
        let other = try #require(try await remote.workers(1).first)
        let began = clockSeconds()
        try await remote.submit(origin.urls("new", 200), as: "new", ["--job-size", "16"])
        try await until { try await remote.queue.batches.status(of: "new")?.state == .done }
        let fast = times(origin, "new")
        #expect(fast.count == 200 && fast[199] - began < 15, "\(fast.map { $0 - began })")
        let before = times(origin, "old").count
        try await until { times(origin, "old").count >= before + 6 }
        let slow = times(origin, "old")
        let most = slow.indices.map { index in slow[index...].prefix { $0 < slow[index] + 1 }.count }.max() ?? 0
        #expect(most <= 3, "\(slow)")
        for worker in [worker, other] {
            worker.signal(SIGKILL)
            _ = await worker.wait()
        }
    }

    @Test(
        "A number of transfers is a maximum, silent ones included; auto goes on beside those",
        arguments: ["2", "sd3", "auto"])
    func maximum(setting: String) async throws {
        let remote = try await RemoteBatch()
        let origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(fault: .stallBeforeHeader) }
        let limits = setting == "auto" ? ["--timeout", "100s"] : ["--timeout", "3s"]
        let compat = setting == "sd3" ? ["--compat", "sd3"] : []
        try await remote.submit(origin.urls("b", 40), as: "b", ["--job-size", "4"] + limits + compat)
        let number = setting == "auto" ? "auto" : "2"
        let worker = try #require(
            try await remote.workers(1, ["--max-concurrent-downloads", number]).first)
        await origin.waitForRequests(setting == "auto" ? 40 : 8)
        if setting == "auto" {
            #expect(origin.maxConcurrentRequestsSeen == 40)
            try await until { try await remote.queue.workerRecords.all().contains { $0.report.stalled > 16 } }
        } else {
            #expect(origin.maxConcurrentRequestsSeen == 2)
            #expect(
                try await remote.queue.workerRecords.all().allSatisfy {
                    $0.report.stalled == 0 && $0.report.inFlight <= 2
                })
            // Told to find its number, it goes on beside them; told to have one, it has no more.
            try await remote.done(["set", "--all", "--max-concurrent-downloads", "auto"])
            try await until { origin.maxConcurrentRequestsSeen > 2 }
        }
        worker.signal(SIGKILL)
        _ = await worker.wait()
    }
}
