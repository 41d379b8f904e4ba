import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing

/// The list of failed URLs of a queue whose workers live for months.
@Suite("The list of failed URLs does not grow for ever", .timeLimit(.minutes(1)))
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

    @Test("What has lapsed goes by itself while a worker lives, though nobody asks for it again")
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
