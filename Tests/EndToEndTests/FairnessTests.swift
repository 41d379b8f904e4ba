import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

/// What batches get of three real workers, seen in the counts and in the origin's log.
@Suite("Fairness", .timeLimit(.minutes(5)))
struct FairnessTests {
    private func fast(_ options: [String] = []) -> [String] { ["--durability", "none", "--window", "all"] + options }

    @Test("Two equal batches are never more than a tenth of what has finished apart, after the first second")
    func equalBatches() async throws {
        let remote = try await RemoteBatch()
        let origin = try OriginServer.pictures(delay: 0.1)
        _ = try await remote.queue.control.pause(.queue)
        for name in ["a", "b"] { try await remote.submit(origin.urls(name, 1000), as: name, fast()) }
        let workers = try await remote.workers(3)
        try await until { try await remote.queue.workers.names().count == 3 }
        _ = try await remote.queue.control.resume(.queue)
        try await until { origin.requestCount() >= 1 }
        let began = ContinuousClock.now
        var readings = 0
        try await until {
            let both = try await remote.queue.batches.statuses(of: ["a", "b"])
            let counts = both.map(\.counts.finished)
            // What three workers do in their first second, however slow the machine is just now.
            if ContinuousClock.now - began >= .seconds(1), counts[0] + counts[1] >= 900 {
                readings += 1
                #expect(
                    abs(counts[0] - counts[1]) * 10 <= counts[0] + counts[1], "\(counts) after \(readings) readings")
            }
            return both.allSatisfy { $0.state == .done }
        }
        #expect(readings > 10)
        for worker in workers { #expect(await worker.wait() == .exited(0)) }
    }

    @Test("A hundred URLs behind fifty thousand are finished within seconds")
    func shortBehindLong() async throws {
        let remote = try await RemoteBatch()
        let origin = try OriginServer.pictures(delay: 0.1)
        let long = remote.folder.path("long.txt")
        let file = try #require(fopen(long, "w"))
        let base = origin.url("/long")
        for index in 0..<50_000 { fputs("\(base)/\(index).png\n", file) }
        fclose(file)
        let feeder = try await remote.coord(["submit", long, "--name", "long", "--durability", "none"])
        // The list is read to its end once before there is a batch, and workers in a burst would not wait for that.
        try await until { try await remote.queue.batches.status(of: "long").map { $0.pushed > 0 } ?? false }
        let workers = try await remote.workers(3)
        try await until { origin.requestCount() >= 500 }
        try await until {
            try await remote.queue.batches.status(of: "long").map { $0.pushed - $0.counts.finished > 10_000 } ?? false
        }
        let list = remote.list(origin.urls("short", 100), "short.txt")
        try await remote.done(["submit", list, "--name", "short", "--durability", "none"])
        let before = origin.requestCount()
        try await until { try await remote.queue.batches.status(of: "short")?.state == .done }
        // By turns of jobs alone it would be 50 jobs of 256. What the three workers have claimed may go before, two jobs of each, and 96 transfers of
        // a tenth of a second are at most 960 URLs a second: less than two seconds' worth of the long one begins between its first and its last, also
        // where the machine has other work.
        let meanwhile = origin.requests.dropFirst(before)
        let short = meanwhile.indices.filter { meanwhile[$0].path.hasPrefix("/short/") }
        let (first, last) = (try #require(short.first), try #require(short.last))
        let counts = [meanwhile[..<first], meanwhile[first..<last]].map { $0.count { $0.path.hasPrefix("/long/") } }
        #expect(counts[0] < 3 * 2 * 256 && counts[1] < 2 * 960, "\(counts) of the long one")
        #expect(try await remote.queue.batches.status(of: "short")?.counts[.downloaded] == 100)
        #expect(try await remote.queue.batches.status(of: "long")?.state == .running)
        feeder.signal(SIGTERM)
        // It may have fed all.
        #expect([.exited(0), .exited(75)].contains(await feeder.wait()), "\(feeder.stderr)")
        _ = try await remote.queue.batches.cancel(batch: "long")
        for worker in workers { #expect(await worker.wait() == .exited(0)) }
    }

    @Test(
        "The origin sees the first URLs first with fifo, and the last ones first with lifo",
        arguments: ["fifo", "lifo"])
    func order(_ order: String) async throws {
        let remote = try await RemoteBatch()
        let origin = try OriginServer.pictures(delay: 0)
        try await remote.submit(origin.urls("b", 400), as: "b", fast(["--order", order, "--job-size", "4"]))
        for worker in try await remote.workers(1, ["--max-concurrent-downloads", "1"]) {
            #expect(await worker.wait() == .exited(0))
        }
        let seen = origin.requests.compactMap { Int($0.path.dropFirst("/b/".count).dropLast(".png".count)) }
        #expect(seen.count == 400)
        let jobs = seen.map { $0 / 4 }
        // Of what a worker has claimed together the tasks may overtake each other: 8 jobs at most.
        for (place, job) in jobs.enumerated() {
            let expected = order == "fifo" ? place / 4 : 99 - place / 4
            #expect(abs(job - expected) <= 16, "\(order): job \(job) at request \(place)")
        }
    }

    @Test("Of a batch that lost its slot to another nothing begins two seconds later, while the other runs")
    func slots() async throws {
        let remote = try await RemoteBatch()
        let origin = try OriginServer.pictures(delay: 0.1)
        try await remote.submit(origin.urls("old", 2000), as: "old", fast(["--slot", "home"]))
        let workers = try await remote.workers(2)
        try await until { origin.requestCount() >= 100 }
        let submit = try await remote.submit(origin.urls("new", 500), as: "new", fast(["--slot", "home"]))
        let returned = clockSeconds()
        #expect(submit.stderr.contains("cancelled old, which had the slot home"))
        for worker in workers { #expect(await worker.wait() == .exited(0)) }
        let statuses = try await remote.queue.batches.statuses(of: ["old", "new"])
        #expect(statuses.map(\.state) == [.cancelled, .done] && statuses[1].counts[.downloaded] == 500)
        let last = { (prefix: String) in origin.requests.last { $0.path.hasPrefix(prefix) }?.time ?? 0 }
        #expect(last("/old/") - returned < 2)
        #expect(last("/new/") > last("/old/"))
    }

    @Test("While high has work without end, low goes on too, and what is raised overtakes")
    func priorities() async throws {
        let remote = try await RemoteBatch()
        let origin = try OriginServer.pictures(delay: 0.02)
        _ = try await remote.queue.control.pause(.queue)
        for (name, count) in [("high", 1500), ("normal", 800), ("low", 200)] {
            try await remote.submit(
                origin.urls(name, count), as: name, fast(["--priority", name, "--job-size", "4"]))
        }
        let workers = try await remote.workers(3)
        _ = try await remote.queue.control.resume(.queue)
        try await until { try await remote.queue.batches.status(of: "high")?.counts.finished ?? 0 >= 750 }
        let counts = try await remote.queue.batches.statuses(of: ["high", "normal", "low"]).map(\.counts.finished)
        // 11 : 4 : 1 of what was claimed, and a little that is in flight.
        #expect(counts[0] > counts[1] && counts[1] > counts[2])
        #expect(counts[2] * 20 >= counts[0] + counts[1] + counts[2] - 200, "\(counts)")
        try await remote.done(["set", "low", "--priority", "high"])
        try await until { try await remote.queue.batches.status(of: "low")?.state == .done }
        #expect(try await remote.queue.batches.status(of: "high")?.state == .running)
        for name in ["high", "normal"] { _ = try await remote.queue.batches.cancel(batch: name) }
        for worker in workers { #expect(await worker.wait() == .exited(0)) }
    }

    @Test(
        "A single URL of a higher priority is requested before what a worker has claimed, and leaves no claims behind it"
    )
    func single() async throws {
        let remote = try await RemoteBatch()
        // Long enough that a worker of four has room for a second job of 256 only after a minute.
        let origin = try OriginServer.pictures(delay: 0.25)
        let options = fast(["--job-size", "256"])
        try await remote.submit(origin.urls("bulk", 2000), as: "bulk", options)
        let workers = try await remote.workers(1, ["--max-concurrent-downloads", "4"])
        try await until { origin.requestCount() >= 8 }
        let name = try #require(try await remote.queue.workers.names().first)
        func held() async throws -> [String] {
            let key = RedisArgument(remote.queue.keys.owned(by: name))
            let keys = try await remote.queue.connection.command(["HKEYS", key])
            return (keys.array ?? []).compactMap { $0.string }.filter { $0.hasPrefix("bulk:") }
        }
        for number in 1...2 {
            let before = origin.requestCount()
            try await remote.submit(
                origin.urls("single-\(number)", 1), as: "single-\(number)", fast(["--priority", "high"]))
            try await until { try await remote.queue.batches.status(of: "single-\(number)")?.state == .done }
            // Not behind the 256 of its job; a heartbeat later is enough.
            #expect(origin.requestCount() - before < 200)
            #expect(try await held().count <= 2)
        }
        _ = try await remote.queue.batches.cancel(batch: "bulk")
        for worker in workers { #expect(await worker.wait() == .exited(0)) }
    }
}
