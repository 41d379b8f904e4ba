import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing

/// The list of failed URLs of a queue whose workers live for months.
@Suite("The list of failed URLs does not grow for ever", .timeLimit(.minutes(5)))
struct BlacklistBoundTests {
    /// Submits pictures that are not there, and returns when all have ended.
    private func fail(_ bench: FaultBench, _ count: Int, _ name: String, _ options: [String] = []) async throws {
        bench.origin.setFallback { _ in OriginResponse(status: 404) }
        try await bench.submit(count, name, options)
        try await until { try await bench.queue.batches.status(of: name)?.state == .done }
    }

    private func leave(_ workers: [ChildProcess]) async {
        for worker in workers { worker.signal(SIGTERM) }
        for worker in workers { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }
    }

    /// Fifteen seconds at most.
    private func soon(_ condition: () async throws -> Bool) async throws {
        let began = ContinuousClock.now
        try await until { try await condition() || ContinuousClock.now - began > .seconds(15) }
    }

    @Test("What has lapsed and was met by no batch goes by itself while a worker lives")
    func swept() async throws {
        let bench = try await FaultBench(delay: 0)
        let workers = try await bench.workers(1)
        try await fail(bench, 40, "short", ["--blacklist-ttl", "1s"])
        try await fail(bench, 5, "long")
        try await fail(bench, 3, "ever", ["--blacklist-ttl", "0"])
        try await bench.redis("SADD", "prefetch:{default}:failed", "http://h/by-hand")
        try await soon { try await bench.redis("SCARD", "prefetch:{default}:failed").int == 9 }
        #expect(try await bench.redis("SCARD", "prefetch:{default}:failed").int == 9)
        #expect(try await bench.redis("HLEN", "prefetch:{default}:failed:meta").int == 8)
        #expect(try await bench.redis("ZCARD", "prefetch:{default}:failed:lapses").int == 5)
        #expect(try await bench.redis("ZCARD", "prefetch:{default}:failed:stays").int == 3)
        try await bench.ran(["fsck"])
        await leave(workers)
    }

    @Test("A lapsed URL is requested once by all workers and batches, and listed anew for twice as long")
    func parole() async throws {
        let bench = try await FaultBench(delay: 0.05)
        var workers = try await bench.workers(1)
        try await fail(bench, 40, "first", ["--blacklist-ttl", "1h"])
        await leave(workers)
        func entry() async throws -> FailedURLEntry? {
            try await bench.queue.failedURLs.find(bench.origin.url("/first/39.png")).entry
        }
        let listed = try #require(try await entry())
        let list = bench.folder.path("first.txt")
        // The clock of the queue, by which entries lapse.
        try await bench.redis("HINCRBY", "prefetch:{default}:clock", "ahead", "3600000")
        workers = try await bench.workers(2)
        for name in ["second", "third"] {
            try await bench.ran(["submit", list, "--name", name, "--job-size", "4", "--window", "all"])
        }
        for name in ["second", "third"] {
            try await until { try await bench.queue.batches.status(of: name)?.state == .done }
        }
        for number in 0..<40 { #expect(bench.origin.requestCount("/first/\(number).png") == 2) }
        let second = try #require(try await bench.queue.batches.status(of: "second")).counts
        let third = try #require(try await bench.queue.batches.status(of: "third")).counts
        #expect(second[.httpError] + third[.httpError] == 40 && second[.blacklisted] + third[.blacklisted] == 40)
        let again = try #require(try await entry())
        #expect(again.factor == 2 && again.next - again.last == 2 * 7 * 86_400_000 && again.first == listed.first)
        let why = try await bench.ran(["why", bench.origin.url("/first/0.png")]).stdout
        #expect(why.contains("on the blacklist: httpError 404, listed 2 times, first 20"), "\(why)")
        #expect(why.contains("    next request: one, from 20"), "\(why)")
        // Now the images are there.
        let picture = GeneratedImage.png(seed: 3, width: 8, height: 8)
        bench.origin.setFallback { _ in OriginResponse(body: picture) }
        await leave(workers)
        try await bench.redis("HINCRBY", "prefetch:{default}:clock", "ahead", "1209600000")
        workers = try await bench.workers(2)
        try await bench.ran(["submit", list, "--name", "fourth", "--job-size", "4", "--window", "all"])
        try await until { try await bench.queue.batches.status(of: "fourth")?.state == .done }
        #expect(try await bench.queue.batches.status(of: "fourth")?.counts[.downloaded] == 40)
        #expect(try await bench.queue.failedURLs.count() == 0)
        try await bench.ran(["fsck"])
        await leave(workers)
    }

    @Test("A limit holds, the oldest go first, a worker says so once, and status has the figure")
    func bounded() async throws {
        let bench = try await FaultBench(delay: 0)
        let set = try await bench.ran(["blacklist", "set", "--blacklist-max", "20"])
        #expect(set.stdout == "the blacklist has at most 20 URLs\n")
        let workers = try await bench.workers(1)
        try await fail(bench, 30, "old")
        try await fail(bench, 10, "new")
        try await soon { try await bench.redis("SCARD", "prefetch:{default}:failed").int == 20 }
        let listed = try await bench.ran(["blacklist", "export"]).stdout
        #expect(listed.split(separator: "\n").count == 20)
        #expect(listed.split(separator: "\n").count { $0.contains("/new/") } == 10)
        try await soon { workers[0].stderr.contains("the blacklist has reached its limit") }
        let told = "the blacklist has reached its limit, so its oldest entries are removed"
        #expect(workers[0].stderr.components(of: told) == 1, "\(workers[0].stderr)")
        let status = try await bench.ran(["status"]).stdout
        #expect(status.contains("the blacklist has at most 20 URLs: 20 older ones were removed"), "\(status)")
        let json = try await bench.ran(["status", "--json"]).stdout
        #expect(json.contains(#""blacklist_max":20,"blacklist_removed":20"#), "\(json)")
        #expect(
            try await bench.ran(["blacklist", "set", "--default"]).stdout
                == "the blacklist has at most 500,000 URLs\n")
        #expect(
            try await bench.ran(["blacklist", "set", "--blacklist-max", "0"]).stdout
                == "the blacklist has no limit\n")
        try await bench.ran(["blacklist", "set"], exit: 64)
        try await bench.ran(["blacklist", "set", "--blacklist-max", "-1"], exit: 64)
        await leave(workers)
    }
}
