import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

/// `submit --open`, `append` and `seal`, as a user runs them.
@Suite("Open batches", .timeLimit(.minutes(5)))
struct OpenBatchTests {
    private func ran(
        _ b: RemoteBatch, _ arguments: [String], exits code: Int32 = 0, says text: String = ""
    ) async throws -> ChildProcess {
        let child = try await b.coord(arguments)
        #expect(await child.wait() == .exited(code), "\(arguments): \(child.stdout) \(child.stderr)")
        #expect(text.isEmpty || child.stderr.contains(text), "\(arguments): \(child.stderr)")
        return child
    }

    private func origin() throws -> OriginServer {
        let origin = try OriginServer()
        let good = OriginResponse(body: GeneratedImage.png(seed: 7, width: 16, height: 16))
        origin.setFallback { $0.path.hasSuffix(".png") ? good : OriginResponse(status: 404) }
        return origin
    }

    /// The line numbers of NDJSON, with or without an image.
    private func lines(_ text: String) -> [Int] {
        text.split(separator: "\n").compactMap { line in
            line.firstRange(of: "\"line\":").flatMap { Int(line[$0.upperBound...].prefix { $0 != "," }) }
        }
    }

    @Test("Open, appended to twice, sealed: every view has the lists as one, and the retry of it too")
    func journey() async throws {
        let b = try await RemoteBatch()
        let origin = try origin()
        let cache = b.folder.path("cache")
        // Bad ones on lines 3, 5 and 8 of the three lists taken as one.
        let first = b.list(["# monday", origin.url("/1.png"), origin.url("/bad1")], "monday.txt")
        let second = b.list([origin.url("/2.png"), origin.url("/bad2")], "tuesday.txt")
        let third = b.list(["", origin.url("/3.png"), "no url", origin.url("/4.png")], "wednesday.txt")
        let submit = try await ran(b, ["submit", "--open", first, "--name", "week"], says: "submit --append week FILE")
        #expect(submit.stdout == "week\n")
        let watch = try await b.coord(["watch", "week", "--json", "--from-start"])
        let workers = try await b.workers(2)
        // Work begins at once, and the batch stays although all it has has ended.
        try await until { try await b.queue.batches.status(of: "week")?.counts.finished == 2 }
        let open = try await ran(b, ["status", "week"])
        #expect(open.stdout.hasPrefix("week  open  100.0%  finished 2 of 2"), "\(open.stdout)")
        let json = try await ran(b, ["status", "week", "--json"])
        #expect(json.stdout.contains(#""state":"running","total":2"#) && json.stdout.contains(#""open":true"#))
        let append = try await ran(b, ["submit", "--append", "week", second])
        #expect(append.stdout == "week: added 2 URLs as its lines 4 to 5\n")
        let again = try await ran(b, ["submit", "--append", "week", second])
        #expect(again.stdout == "week: has these 2 URLs already as its lines 4 to 5; nothing was added\n")
        let piped = try await ChildProcess(
            builtProduct("prefetch-coord"),
            ["submit", "--append", "wee", "-", "--redis", b.redis.url, "--cache", cache, "--json"],
            environment: RemoteBatch.clean, input: readFile(third))
        #expect(await piped.wait() == .exited(0), "\(piped.stderr)")
        #expect(piped.stdout.contains(#""total":7"#) && piped.stdout.contains(#""open":true"#), "\(piped.stdout)")
        let status = try await ran(b, ["status", "week"])
        #expect(status.stdout.contains("  list \(second), 2 URLs from line 4\n"), "\(status.stdout)")
        #expect(status.stdout.contains("  3 lists, 7 of their 7 URLs queued\n"), "\(status.stdout)")
        let seal = try await ran(b, ["submit", "--seal", "week"])
        #expect(seal.stdout.hasPrefix("sealed week: 7 URLs, "))
        for worker in workers { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }

        #expect(await watch.wait() == .exited(3), "\(watch.stderr)")
        let events = watch.stdout.split(separator: "\n")
        #expect(events.count == 16)
        #expect(
            events.suffix(2) == [
                #"{"event":"didFinish","totalCount":4,"skippedCount":3}"#,
                #"{"event":"completion","finishedCount":7,"skippedCount":3}"#,
            ])
        let urls = events.compactMap { $0.split(separator: "\"url\":\"").last?.prefix { $0 != "\"" } }
        for path in ["/1.png", "/bad1", "/2.png", "/bad2", "/3.png", "/4.png"] {
            #expect(urls.contains { $0 == origin.url(path) }, "\(path)")
        }
        let summary = try await ran(b, ["watch", "week"], exits: 3)
        #expect(summary.stdout.hasPrefix("week done: finished 7 of 7: 4 images, 3 skipped ("), "\(summary.stdout)")
        let failures = try await ran(b, ["failures", "week", "--json"])
        #expect(lines(failures.stdout) == [3, 5, 8], "\(failures.stdout)")
        #expect(failures.stdout.contains(#"{"line":8,"url":"no url","outcome":"invalidURL""#))
        let export = try await ran(b, ["export", "week", "--to", "jsonl", "--cache", cache])
        #expect(lines(export.stdout) == [2, 3, 4, 5, 7, 8, 9], "\(export.stdout)")
        #expect(
            export.stdout.split(separator: "\n").map { $0.contains("\"path\":null") } == [
                false, true, false, true, false, true, false,
            ])
        let why = try await ran(b, ["why", origin.url("/bad2"), "--cache", cache])
        #expect(why.stdout.contains("line 5"), "\(why.stdout)")
        _ = try await ran(b, ["fsck", "week", "--cache", cache])

        // The retry has the skipped lines of all lists under their numbers.
        origin.setFallback { _ in OriginResponse(body: GeneratedImage.png(seed: 9, width: 16, height: 16)) }
        _ = try await ran(b, ["retry", "week"], says: "queued 3 URLs as week.2")
        for worker in try await b.workers(1) { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }
        #expect(lines(try await ran(b, ["failures", "week", "--json"]).stdout) == [8])
        let merged = try await ran(b, ["export", "week", "--to", "jsonl", "--cache", cache])
        #expect(lines(merged.stdout) == [2, 3, 4, 5, 7, 8, 9])
        #expect(merged.stdout.split(separator: "\n").count { $0.contains("\"path\":null") } == 1)
    }

    @Test(
        "An appender that is killed between two pushes is gone on with by the same command, and nothing is there twice")
    func killed() async throws {
        let b = try await RemoteBatch()
        let origin = try origin()
        _ = try await ran(b, ["submit", "--open", "--name", "week"])
        let list = b.list((0..<500).map { origin.url("/\($0).png") })
        let other = b.list((0..<50).map { origin.url("/b\($0).png") }, "other.txt")
        let words = ["submit", "--append", "week", list, "--window", "1", "--job-size", "1"]
        for _ in 0..<3 {
            let appender = try await b.coord(words)
            // One push has 64 jobs, and the window takes no second one before workers come.
            try await until { appender.stderr.contains("the list is longer than the window") }
            appender.signal(SIGKILL)
            #expect(await appender.wait() == .signalled(SIGKILL))
            #expect(try await b.queue.batches.status(of: "week")?.pushed == 64)
        }
        let stopped = try await b.coord(words)
        try await until { stopped.stderr.contains("the list is longer than the window") }
        stopped.signal(SIGTERM)
        #expect(await stopped.wait() == .exited(75), "\(stopped.stderr)")
        #expect(stopped.stderr.contains("submit --append week \(list) --redis \(b.redis.url)\n"), "\(stopped.stderr)")
        #expect(try await b.queue.batches.status(of: "week")?.total == 500)
        // Somebody else's list goes behind it, and what the dead one left is queued for it.
        let behind = try await b.coord(["submit", "--append", "week", other])
        let workers = try await b.workers(2)
        let resumed = try await ran(b, ["submit", "--append", "week", list, "--resume"])
        #expect(resumed.stdout == "week: queued the rest of 500 URLs, its lines 1 to 500\n")
        #expect(await behind.wait() == .exited(0), "\(behind.stderr)")
        #expect(behind.stdout == "week: added 50 URLs as its lines 501 to 550\n")
        _ = try await ran(b, ["submit", "--append", "week", list, "--resume"], exits: 66, says: "no such list")
        _ = try await ran(b, ["submit", "--seal", "week"])
        for worker in workers { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }
        let status = try #require(try await b.queue.batches.status(of: "week"))
        #expect(status.state == .done && status.total == 550 && status.counts.finished == 550)
        #expect(status.counts.skipped == 0)
        #expect((0..<500).allSatisfy { origin.requestCount("/\($0).png") == 1 })
        let export = try await ran(
            b, ["export", "week", "--to", "jsonl", "--cache", b.folder.path("cache")])
        #expect(lines(export.stdout) == Array(1...550))
        _ = try await ran(b, ["fsck", "week"])
    }

    @Test("What a seal finds unqueued it queues, and submit --resume goes on with an open batch")
    func resumed() async throws {
        let b = try await RemoteBatch()
        let origin = try origin()
        let first = b.list((0..<200).map { origin.url("/\($0).png") }, "first.txt")
        let second = b.list((0..<200).map { origin.url("/s\($0).png") }, "second.txt")
        let window = ["--window", "1", "--job-size", "1"]
        let submit = try await b.coord(["submit", "--open", first, "--name", "week"] + window)
        try await until { submit.stderr.contains("the list is longer than the window") }
        submit.signal(SIGKILL)
        #expect(await submit.wait() == .signalled(SIGKILL))
        let resumed = try await ran(b, ["submit", "--resume", first], says: "continuing week: 64 of 200 URLs")
        #expect(resumed.stdout == "week\n")
        #expect(try await b.queue.batches.status(of: "week")?.pushed == 200)
        // The same list as an ordinary batch is another batch.
        let plain = try await ran(b, ["submit", first, "--name", "plain"])
        #expect(plain.stdout == "plain\n")
        let appender = try await b.coord(["submit", "--append", "week", second] + window)
        try await until { appender.stderr.contains("the list is longer than the window") }
        appender.signal(SIGKILL)
        #expect(await appender.wait() == .signalled(SIGKILL))
        let seal = try await ran(b, ["submit", "--seal", "week"], says: "takes no more lists")
        #expect(seal.stdout == "sealed week: 400 URLs, 0 finished\n")
        for worker in try await b.workers(2) { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }
        #expect(try await b.queue.batches.status(of: "week")?.counts.finished == 400)
        _ = try await ran(b, ["fsck"])
    }

    @Test("Wrong inputs are refused with their exit codes, and leave the batch as it was")
    func wrong() async throws {
        let b = try await RemoteBatch()
        let list = b.list(["http://192.0.2.1/a.png"])
        b.folder.write(Array("PAR1\u{1}\u{2}".utf8), to: "x.parquet")
        _ = try await ran(b, ["submit", "--open", list, "--name", "open"])
        _ = try await b.submit(["http://192.0.2.1/b.png"], as: "plain")
        _ = try await ran(b, ["submit", "--open", "--name", "done"])
        _ = try await ran(b, ["submit", "--seal", "done"])
        _ = try await ran(b, ["submit", "--open", "--name", "sealed"])
        _ = try await ran(b, ["submit", "--append", "sealed", list])
        _ = try await ran(b, ["submit", "--seal", "sealed"])
        _ = try await ran(b, ["submit", "--open", "--name", "cancelled"])
        _ = try await ran(b, ["cancel", "cancelled", "--yes"])
        let other = b.list(["http://192.0.2.1/c.png"], "c.txt")
        func state() async throws -> [RedisValue] {
            var state: [RedisValue] = []
            for id in try await b.queue.catalog.ids() {
                for suffix in ["", ":lists"] {
                    let command = suffix.isEmpty ? ["HGETALL"] : ["LRANGE"]
                    let words = command + ["prefetch:{default}:b:\(id)\(suffix)"] + (suffix.isEmpty ? [] : ["0", "-1"])
                    state.append(try await b.queue.connection.command(words.map { RedisArgument($0) }))
                }
            }
            return state
        }
        let before = try await state()
        let cases: [([String], Int32, String)] = [
            (["submit", "--append", "none", other], 66, "there is no batch 'none'"),
            (["submit", "--append", "open", b.folder.path("none.txt")], 66, "No such file"),
            (["submit", "--append", "open", b.folder.path("x.parquet")], 65, "a Parquet file"),
            (["submit", "--append", "open", b.folder.path], 65, "looks like"),
            (["submit", "--append", "plain", other], 78, "was not submitted with --open"),
            (["submit", "--append", "done", other], 78, "done is done and takes no more lists"),
            (["submit", "--append", "sealed", other], 78, "sealed is sealed and takes no more lists"),
            (["submit", "--append", "cancelled", other], 78, "cancelled is cancelled and takes no more lists"),
            (["submit", "--append", "open", other, "--resume"], 66, "no such list"),
            (
                ["submit", "--append", "open", other, "--resume", "--again"], 64,
                "--resume and --again contradict each other"
            ),
            (["submit", "--append", "open", other, "--window", "0"], 64, "--window"),
            (["submit", "--append", "open"], 64, "file"),
            (["submit", "--seal", "none"], 66, "there is no batch 'none'"),
            (["submit", "--seal", "plain"], 78, "was not submitted with --open"),
            (["submit", "--seal", "cancelled"], 78, "cancelled is cancelled already"),
            (["submit"], 64, "file"),
            (["submit", other, "--deadline", "0"], 64, "--deadline is a time above 0"),
            (["submit", other, "--deadline", "1e300d"], 64, "--deadline"),
            (["submit", other, "--finish-at", "101%"], 64, "--finish-at is a share up to 100%"),
            (["submit", list, "--resume", "--deadline", "1m"], 64, "--resume"),
        ]
        for (arguments, code, text) in cases {
            let child = try await b.coord(arguments)
            #expect(await child.wait() == .exited(code), "\(arguments): \(child.stderr)")
            #expect(child.stderr.contains(text), "\(arguments): \(child.stderr)")
            #expect(child.stdout == "", "\(arguments)")
        }
        #expect(try await state() == before)
        // A copy of standard input that was refused is not left behind.
        let lists = b.folder.path("cache")
        let refused = try await ChildProcess(
            builtProduct("prefetch-coord"),
            ["submit", "--append", "done", "-", "--redis", b.redis.url, "--cache", lists],
            environment: RemoteBatch.clean, input: Array("http://192.0.2.1/d.png\n".utf8))
        #expect(await refused.wait() == .exited(78), "\(refused.stderr)")
        #expect(!b.folder.contents().contains { $0.contains("stdin-") })
    }
}
