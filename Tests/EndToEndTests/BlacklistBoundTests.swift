import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing

/// The blacklist of a queue whose workers live for months.
@Suite("The blacklist does not grow for ever", .timeLimit(.minutes(5)))
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

    @Test("What has lapsed goes by itself while a worker lives")
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
        try await bench.done(["fsck"])
        await leave(workers)
    }

    @Test("A lapsed URL is requested again: the same failure lists it anew, an image takes it off")
    func lapsed() async throws {
        let bench = try await FaultBench(delay: 0)
        try await withWorker(bench) { try await fail(bench, 40, "first", ["--blacklist-ttl", "1h"]) }
        let list = bench.folder.path("first.txt")
        func end(_ name: String, after hours: Int, _ outcome: PrefetchOutcome) async throws {
            // The clock of the queue, by which entries lapse. No worker sweeps them before their batch is there.
            try await bench.redis("HINCRBY", "prefetch:{default}:clock", "ahead", "\(hours * 3_600_000)")
            try await bench.done(["submit", list, "--name", name, "--job-size", "4", "--window", "all"])
            try await withWorker(bench) {
                try await until { try await bench.queue.batches.status(of: name)?.state == .done }
            }
            #expect(try await bench.queue.batches.status(of: name)?.counts[outcome] == 40)
        }
        try await end("second", after: 0, .blacklisted)
        try await end("third", after: 1, .httpError)
        #expect(bench.origin.requestCount() == 80)
        let why = try await bench.done(["why", bench.origin.url("/first/0.png")]).stdout
        #expect(why.contains("on the blacklist: httpError 404, listed "), "\(why)")
        #expect(why.contains("    next request: by a batch that has it after 20"), "\(why)")
        // Now the images are there.
        let picture = GeneratedImage.png(seed: 3, width: 8, height: 8)
        bench.origin.setFallback { _ in OriginResponse(body: picture) }
        try await end("fourth", after: 7 * 24 + 1, .downloaded)
        #expect(try await bench.queue.failedURLs.count() == 0)
        try await bench.done(["fsck"])
    }

    private func withWorker(_ bench: FaultBench, _ body: () async throws -> Void) async throws {
        let workers = try await bench.workers(1)
        try await body()
        await leave(workers)
    }

    @Test("A limit holds, the oldest go first, a worker says so once, and status has the figure")
    func bounded() async throws {
        let bench = try await FaultBench(delay: 0)
        try await bench.redis("HSET", "prefetch:{default}:failed:limit", "max", "20")
        let workers = try await bench.workers(1)
        try await fail(bench, 30, "old")
        try await fail(bench, 10, "new")
        try await soon { try await bench.redis("SCARD", "prefetch:{default}:failed").int == 20 }
        let listed = try await bench.done(["blacklist", "list"]).stdout
        #expect(listed.split(separator: "\n").count == 20)
        #expect(listed.split(separator: "\n").count { $0.contains("/new/") } == 10)
        try await soon { workers[0].stderr.contains("the blacklist has reached its limit") }
        let told = "the blacklist has reached its limit, so its oldest entries are removed"
        #expect(workers[0].stderr.components(of: told) == 1, "\(workers[0].stderr)")
        let status = try await bench.done(["status"]).stdout
        #expect(status.contains("the blacklist has at most 20 URLs: 20 older ones were removed"), "\(status)")
        let json = try await bench.done(["status", "--json"]).stdout
        #expect(json.contains(#""blacklist_max":20,"blacklist_removed":20"#), "\(json)")
        await leave(workers)
    }
}
