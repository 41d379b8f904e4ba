import Origin
import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Batches that have the name of an earlier one", .timeLimit(.minutes(5)))
struct BatchNameTests {
    /// A batch called `same` of three jobs with one URL each; what its options and its URLs are is told by `nonce`.
    private func open(_ f: QueueFixture, nonce: String, sizes: [Int] = [1, 1, 1]) async throws {
        let total = sizes.reduce(0, +)
        let fields = [("details", "1000"), ("total", String(total))]
        #expect(try await f.queue.batches.open(id: "same", nonce: nonce, exactly: true, fields: fields) == "same")
        try await f.push("same", sizes: sizes)
        _ = try await f.queue.batches.seal(batch: "same", total: total)
    }

    private func end(_ f: QueueFixture) async throws {
        #expect(try await f.queue.batches.cancel(batch: "same") == "running")
        #expect(try await f.queue.batches.remove(batch: "same") == .removed)
    }

    @Test("A report of the earlier batch settles nothing of the later one, and takes no job of it")
    func lateReport() async throws {
        let f = try await QueueFixture()
        try await f.join("w", "v")
        try await open(f, nonce: "first")
        let old = try await f.claim("w", 1, count: 2)
        try await end(f)
        try await open(f, nonce: "second")
        // The same worker has the first job of both now.
        let new = try await f.claim("w", 2, count: 1)
        #expect(new.map(\.job) == [old[0].job])
        for claim in old {
            let report = QueueFixture.report(claim.job, [.httpError], nonce: "first") { $0.list = "http://h/listed" }
            #expect(try await f.queue.reports.send([report], worker: "w")[0].counted == nil)
        }
        #expect(try await f.field("finished", of: "same") == "0")
        #expect(try await f.queue.failedURLs.count() == 0)
        #expect(try await f.findings("same") == [])
        let claims = try await f.claim("v", 1, count: 3)
        for (claim, worker) in claims.map({ ($0, "v") }) + [(new[0], "w")] {
            let report = QueueFixture.report(claim.job, [.hit], nonce: "second")
            #expect(try await f.queue.reports.send([report], worker: worker)[0].counted?.count == 1)
        }
        #expect(try await f.field("state", of: "same") == "done")
        #expect(try await f.findings("same") == [])
    }

    @Test("Jobs of the earlier batch do not come back to the later one's list", arguments: ["reap", "release", "keep"])
    func lateJobs(how: String) async throws {
        let f = try await QueueFixture()
        try await f.join("w", "v")
        try await open(f, nonce: "first")
        let old = try await f.claim("w", 1, count: 2)
        try await end(f)
        try await open(f, nonce: "second")
        _ = try await f.claim("v", 1, count: 1)
        switch how {
        case "reap":
            try await f.expire("w")
            while try await f.queue.workers.reap() != .nobody {}
        case "release": try await f.queue.jobs.release(worker: "w", jobs: old.map(\.name), leaving: false)
        default: _ = try await f.queue.jobs.keep(worker: "w", jobs: [])
        }
        #expect(try await f.redis("LLEN", f.keys.jobs("same")).int == 2)
        #expect(try await f.findings("same") == [])
    }

    @Test("A split, a check and a reading of the oldest URLs pass over jobs of the earlier batch")
    func lateSplit() async throws {
        let f = try await QueueFixture()
        try await f.join("w")
        try await open(f, nonce: "first", sizes: [4])
        let old = try await f.claim("w", 1)[0]
        try await end(f)
        try await open(f, nonce: "second", sizes: [4])
        #expect(try await f.findings("same") == [])
        let status = try #require(try await f.queue.batches.status(of: "same"))
        #expect(try await f.queue.openURLs.oldest(of: status).allSatisfy { $0.state == .queued })
        try await f.queue.jobs.split(worker: "w", claim: old, into: old.job.split(into: 2))
        #expect(try await f.redis("LLEN", f.keys.jobs("same")).int == 1)
        #expect(try await f.redis("EXISTS", f.keys.tries("same")).int == 0)
        #expect(try await f.findings("same") == [])
    }

    @Test("A beat tells that the earlier batch is gone while the later one runs")
    func beat() async throws {
        let f = try await QueueFixture()
        try await f.join("w")
        try await open(f, nonce: "second")
        let batches = [BatchIdentity(id: "same", nonce: "first"), BatchIdentity(id: "same", nonce: "second")]
        let settings = try await f.queue.workers.beat(
            worker: "w", lease: 60_000, trouble: false, batches: batches, about: [])
        #expect(settings?.batches.map(\.state) == ["gone", "running"])
    }

    @Test("A worker that lives on goes by the later batch's options and asks again for what failed in the earlier one")
    func options() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.setFallback { _ in OriginResponse(body: Array("<!DOCTYPE html><html></html>".utf8)) }
        fixture.origin.route("/0", OriginResponse(status: 404))
        let queue = try fixture.queue()
        let urls = (0..<4).map { fixture.origin.url("/\($0)") }
        fixture.folder.write(Array((urls.joined(separator: "\n") + "\n").utf8), to: "same.txt")
        let list = try URLList(path: fixture.folder.path("same.txt"))
        func run(_ validate: String, nonce: String) async throws -> PrefetchCounts {
            var options = BatchOptions()
            options.validate = ValidationLevel(name: validate) ?? .decode
            let id = try await queue.batches.open(
                id: "same", nonce: nonce, exactly: true, fields: [("total", "4"), ("options", options.encoded)])
            #expect(id == "same")
            #expect(try await ListFeeder(queue: queue, list: list, batch: "same").feed() == .sealed)
            try await until { try await queue.batches.status(of: "same")?.state == .done }
            return try #require(try await queue.batches.status(of: "same")).counts
        }
        let worker = try fixture.worker { $0.burst = false }
        let running = Task { try await worker.run() }
        let first = try await run("none", nonce: "first")
        #expect(first[.downloaded] == 3 && first[.httpError] == 1)
        #expect(try await queue.batches.remove(batch: "same") == .removed)
        try await queue.failedURLs.removeAll()
        fixture.origin.route("/0", OriginResponse(body: GeneratedImage.png(seed: 1, width: 9, height: 9)))
        // What was stored unverified is no image: the later batch says to look.
        let second = try await run("decode", nonce: "second")
        #expect(second[.downloaded] == 1 && second[.badImage] == 3)
        // Entries of the earlier batches of this name are no outcome of this one.
        #expect(try await queue.batches.remove(batch: "same") == .removed)
        let third = try await run("decode", nonce: "third")
        #expect(third[.hit] == 1 && third[.blacklisted] == 3)
        worker.drain()
        _ = try await running.value
    }
}
