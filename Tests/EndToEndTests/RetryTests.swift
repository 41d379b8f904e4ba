import Glibc
import Origin
import Prefetch
import TestSupport
import Testing

/// `retry` and the merged views, as a user runs them.
@Suite("Retrying", .timeLimit(.minutes(5)))
struct RetryTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let net = ["--allow-net", "127.0.0.0/8", "-q", "-n", "2"]

    private func png(_ seed: Int) -> OriginResponse {
        OriginResponse(body: GeneratedImage.png(seed: UInt64(seed), width: 8, height: 8))
    }

    @Test("retry fetches what was skipped under its line numbers, and every view has the newest result")
    func chain() async throws {
        let origin = try OriginServer()
        for index in 0..<6 { origin.route("/\(index)", png(index)) }
        origin.setFallback { _ in OriginResponse(status: 404) }
        let file = list(["# list"] + (0..<10).map { origin.url("/\($0)") })
        let cache = folder.path("cache")
        let at = ["--cache", cache]
        let run = try await ran(["run", file, "--json"] + at + net, exits: 3)
        #expect(run.stdout.contains(#""retry_of":null,"retried_by":null,"#))
        let id = String(run.stdout.split(separator: "\"id\":\"")[1].prefix { $0 != "\"" })
        // 404 is on the blacklist: retry asks all the same.
        for index in [6, 8] { origin.route("/\(index)", png(index)) }
        let out = folder.path("out")
        let first = try await ran(["retry", id, "--json", "--out", out] + at + net, exits: 3)
        #expect(first.stderr.contains("retrying the 4 skipped of 10 URLs of \(id) as \(id).2"))
        #expect(first.stdout.contains(#""id":"\#(id).2","state":"done","total":4,"finished":4,"skipped":2,"#))
        #expect(first.stdout.contains(#""retry_failed":true"#) && first.stdout.contains(#""retry_of":"\#(id)""#))
        #expect(first.stderr.contains("\(out): 8 images, 8 of them new; 2 lines without one"))
        #expect(folder.contents().contains("out/000008.png") && folder.contents().contains("out/000010.png"))

        let failures = try await ran(["failures", id, "--json"] + at)
        let skipped = failures.stdout.split(separator: "\n").map { $0.prefix { $0 != "," } }
        #expect(skipped == [#"{"line":9"#, #"{"line":11"#])
        let status = try await ran(["status", id] + at)
        #expect(status.stdout.hasPrefix("\(id)  done  100.0%  finished 10 of 10: 6 images, 4 skipped (httpError 4)"))
        let line =
            "; newest results of the 10 lines of \(id): 8 with an image, 2 skipped (httpError 2)\n"
        #expect(status.stdout.contains("  retried by \(id).2\(line)"), "\(status.stdout)")
        let newest = try await ran(["status", "\(id).2"] + at)
        #expect(newest.stdout.contains("  retries \(id)\(line)"), "\(newest.stdout)")
        let json = try await ran(["status", id, "--json"] + at)
        #expect(json.stdout.contains(#""finished":10,"skipped":4"#))
        #expect(json.stdout.contains(#""retry_of":null,"retried_by":"\#(id).2","#))

        // Of the chain whichever is named, the newest is taken up; its own retry is the third.
        origin.route("/7", png(7))
        let second = try await ran(["retry", id] + at + net, exits: 3)
        #expect(second.stderr.contains("retrying the 2 skipped of 4 URLs of \(id).2 as \(id).3"))
        #expect(second.stdout.contains("newest results of the 10 lines of \(id): 9 with an image, 1 skipped"))
        for name in [id, "\(id).2", "\(id).3"] {
            let export = try await ran(["export", name, "--format", "jsonl"] + at)
            let lines = export.stdout.split(separator: "\n")
            #expect(lines.map { $0.contains(#""path":null"#) } == (0..<10).map { $0 == 9 })
            #expect(lines.map { Int($0.dropFirst(8).prefix { $0 != "," }) } == Array(2...11))
            #expect(lines.count { $0.contains(#""outcome":"downloaded""#) } == 9)
        }
        origin.route("/9", png(9))
        let last = try await ran(["retry", "--json"] + at + net)
        #expect(last.stdout.contains(#""id":"\#(id).4""#) && last.stdout.contains(#""skipped":0"#))
        let requests = origin.requestCount()
        let manifest = folder.path("m.jsonl")
        let none = try await ran(
            ["retry", id, "--manifest", manifest] + at + net, says: "nothing to retry: \(id).4 skipped none")
        #expect(none.stdout == "" && origin.requestCount() == requests)
        #expect(folder.read("m.jsonl")?.count { $0 == UInt8(ascii: "\n") } == 10)
        #expect(try await ran(["failures"] + at).stdout == "")
        #expect(try await ran(["fsck"] + at).stdout == "4 batches, everything agrees\n")
        // `run` of the list is a batch of all of it, not a fifth retry.
        let again = try await ran(["run", file, "--json"] + at + net)
        #expect(
            again.stdout.contains(#""id":"\#(id).5","state":"done","total":10"#) && again.stdout.contains(#""hit":10"#))
    }

    @Test("A retry that was killed is gone on with by the same command")
    func killed() async throws {
        let origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(status: 404) }
        let file = list((0..<1000).map { origin.url("/\($0)") })
        let cache = folder.path("cache")
        let at = ["--cache", cache]
        try await ran(["run", file] + at + net + ["--max-per-host", "0"], exits: 3)
        let before = origin.requestCount()
        let body = png(1)
        origin.setFallback { _ in
            var response = body
            response.delay = 0.02
            return response
        }
        let first = try await coord(["retry"] + at + net)
        await origin.waitForRequests(before + 200)
        first.signal(SIGKILL)
        #expect(await first.wait() == .signalled(SIGKILL))
        let open = try await ran(["export", "--format", "jsonl"] + at)
        #expect(open.stdout.contains(#""outcome":null"#) && open.stdout.split(separator: "\n").count == 1000)
        try await ran(["rm", "urls-", "--yes"] + at, exits: 66, says: "2 batches")
        let second = try await ran(["retry", "--json"] + at + net)
        #expect(second.stderr.contains("continuing urls-"), "\(second.stderr)")
        #expect(second.stdout.contains(#""total":1000,"finished":1000,"skipped":0"#))
        let fsck = try await ran(["fsck"] + at)
        #expect(fsck.stdout == "2 batches, everything agrees\n")
    }

    @Test("Of a batch whose details are not all kept the list is needed")
    func listMoved() async throws {
        let b = try await RemoteBatch()
        let origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(status: 404) }
        let at = ["--redis", b.redis.url]
        try await b.submit((0..<5).map { origin.url("/\($0)") }, as: "urls")
        try await b.keepDetails(1, of: "urls")
        for worker in try await b.workers(1) { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }
        // Nobody has kept a copy of the list.
        TemporaryDirectory.remove(TemporaryDirectory.stateHome.path + "/prefetch/lists")
        let moved = b.folder.path("moved.txt")
        #expect(rename(b.folder.path("urls.txt"), moved) == 0)
        try await ran(["retry"] + at, exits: 66, says: "is not there any more, and there is no copy of it")
        // No batch that could never be fed was left behind.
        #expect(try await b.queue.catalog.running() == [])
        #expect(rename(moved, b.folder.path("urls.txt")) == 0)
        try await ran(["retry"] + at, says: "retrying the 5 skipped")
        for worker in try await b.workers(1) { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }
        #expect(try await b.queue.batches.status(of: "urls.2")?.counts[.httpError] == 5)
    }

    @Test("With --redis retry is a submit: workers elsewhere fetch")
    func submitted() async throws {
        let redis = try await RedisServer()
        let origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(status: 404) }
        let at = ["--redis", redis.url]
        let cache = folder.path("cache")
        func work() async throws {
            let worker = try await ChildProcess(
                builtProduct("prefetch-worker"),
                ["--burst", "--redis", redis.url, "--cache", cache, "--allow-net", "127.0.0.0/8"])
            #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        }
        try await ran(["submit", list((0..<6).map { origin.url("/\($0)") }), "--name", "a"] + at)
        try await ran(
            ["retry"] + at, exits: 75, says: "a is still running: 0 of 6 finished\nhint: retry when it is done")
        try await work()
        for index in 0..<4 { origin.route("/\(index)", png(index)) }
        for words in [["-n", "2"], ["--manifest", "m"], ["--limit-rate", "1M"], ["--allow-failures", "1"]] {
            try await ran(["retry"] + words + at, exits: 64, says: "with --redis the workers are elsewhere")
        }
        let retry = try await ran(["retry", "a"] + at, says: "queued 6 URLs as a.2")
        #expect(retry.stdout == "a.2\n")
        try await ran(["retry", "a"] + at, exits: 75, says: "a.2 is still running: 0 of 6 finished")
        try await work()
        let json = try await ran(["status", "a.2", "--json"] + at)
        #expect(json.stdout.contains(#""finished":6,"skipped":2"#) && json.stdout.contains(#""httpError":2"#))
        let waiting = try await coord(["retry", "a", "--wait", "--json", "--allow-failures", "2"] + at)
        try await untilRunning(redis, "a.3")
        try await work()
        #expect(await waiting.wait() == .exited(0), "\(waiting.stderr)")
        #expect(waiting.stdout.contains(#""id":"a.3","state":"done","total":2,"finished":2,"skipped":2"#))
        let export = try await ran(["export", "a", "--format", "jsonl", "--cache", cache] + at)
        #expect(export.stdout.split(separator: "\n").map { $0.contains(#""path":null"#) } == (0..<6).map { $0 > 3 })
    }

    @Test("Where there is nothing to retry from, it says so")
    func nothing() async throws {
        let cache = folder.path("cache")
        try await ran(["retry", "--cache", cache], exits: 66, says: "has no batches: no run of this user has used it")
        #expect(access(cache, F_OK) != 0)
        let origin = try OriginServer()
        origin.route("/1", png(1))
        try await ran(["run", list([origin.url("/1")]), "--cache", cache] + net)
        try await ran(["retry", "nope", "--cache", cache], exits: 66, says: "there is no batch 'nope'")
        let done = try await ran(["retry", "--json", "--cache", cache], says: "nothing to retry")
        #expect(done.stdout.contains(#""state":"done","total":1"#))
    }

    /// Returns when a batch is there and fed: a worker in a burst before that would find nothing to do.
    private func untilRunning(_ redis: RedisServer, _ id: String) async throws {
        while true {
            let status = try await coord(["status", id, "--json", "--redis", redis.url])
            if await status.wait() == .exited(0), status.stdout.contains(#""sealed":true"#) { return }
        }
    }
}
