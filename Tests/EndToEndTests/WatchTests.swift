import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

@Suite("Watching a batch", .timeLimit(.minutes(5)))
struct WatchTests {
    private let urls = (0..<10).map { "http://192.0.2.1/\($0).png" }

    /// The 22 lines of ten URLs, of which some were skipped as `httpError`.
    private func expectEvents(_ text: String, of urls: [String], skipped: Set<String>) {
        let lines = text.split(separator: "\n").map(String.init)
        #expect(lines.count == 2 * urls.count + 2, "\(text)")
        guard lines.count == 2 * urls.count + 2 else { return }
        var seen: [String] = []
        let n = urls.count
        for k in 1...n {
            #expect(lines[2 * k - 2] == #"{"event":"progress","finished":\#(k),"total":\#(n)}"#)
            let line = lines[2 * k - 1]
            let head = #"{"event":"didPrefetchURL","url":""#
            #expect(line.hasPrefix(head), "\(line)")
            let url = String(line.dropFirst(head.count).prefix { $0 != "\"" })
            seen.append(url)
            let tail = line.dropFirst(head.count + url.count)
            let counts = #"","finishedCount":\#(k),"totalCount":\#(n),"outcome":"#
            let outcomes = skipped.contains(url) ? ["httpError"] : ["downloaded", "hit"]
            #expect(outcomes.contains { tail == "\(counts)\"\($0)\"}" }, "\(line)")
        }
        #expect(seen.sorted() == urls.sorted())
        #expect(
            lines[2 * n]
                == #"{"event":"didFinish","totalCount":\#(n - skipped.count),"skippedCount":\#(skipped.count)}"#)
        #expect(
            lines[2 * n + 1] == #"{"event":"completion","finishedCount":\#(n),"skippedCount":\#(skipped.count)}"#)
    }

    @Test("Ten URLs, three bad, three workers and one of them killed: 22 lines for everybody who follows")
    func twentyTwo() async throws {
        let b = try await RemoteBatch()
        let origin = try OriginServer()
        let good = OriginResponse(body: GeneratedImage.png(seed: 7, width: 16, height: 16))
        origin.setFallback { $0.path.hasSuffix(".png") ? good : OriginResponse(status: 404) }
        var held = good
        held.fault = .stallBeforeHeader
        origin.route("/4.png", sequence: [held, good])
        let urls = (0..<10).map { origin.url([2, 5, 9].contains($0) ? "/\($0).bad" : "/\($0).png") }
        let program = try await ChildProcess(
            builtProduct("DelegateProgram"), [b.redis.url, b.list(urls)])
        try await until { program.stderr.hasSuffix("\n") }
        let id = String(program.stderr.dropFirst("batch ".count).dropLast())
        #expect(id.hasPrefix("urls-"), "\(program.stderr)")
        let watch = try await b.coord(["watch", id, "--json", "--from-start"])
        let events = try await ChildProcess(
            builtProduct("DelegateProgram"), [b.redis.url, id, "events"])
        let workers = try await b.workers(3, ["--lease", "2s"])
        await origin.waitForRequests(1, to: "/4.png")
        // Whoever holds the transfer that the origin holds dies; somebody else gets its job when its lease has run out.
        var victim: ChildProcess?
        for name in try await b.queue.workers.names() {
            let owned = try await b.queue.connection.command(["HKEYS", RedisArgument(b.queue.keys.owned(by: name))])
            guard (owned.array ?? []).contains(where: { $0.string?.hasPrefix("\(id):4:") == true }) else { continue }
            victim = workers.first { name.hasSuffix(":\($0.pid)") }
        }
        try #require(victim).signal(SIGKILL)
        #expect(await victim?.wait() == .signalled(SIGKILL))
        origin.release("/4.png")
        #expect(await watch.wait() == .exited(3), "\(watch.stderr)")
        #expect(await program.wait() == .exited(0), "\(program.stderr)")
        #expect(await events.wait() == .exited(0), "\(events.stderr)")
        for worker in workers where worker.pid != victim?.pid { #expect(await worker.wait() == .exited(0)) }

        let skipped = Set(urls.filter { $0.hasSuffix(".bad") })
        expectEvents(watch.stdout, of: urls, skipped: skipped)
        let late = try await b.done(["watch", id, "--json", "--from-start"], 3)
        expectEvents(late.stdout, of: urls, skipped: skipped)
        let later = try await b.done(["watch", id, "--json", "--allow-failures", "3"])
        let last = late.stdout.split(separator: "\n").suffix(2)
        #expect(later.stdout.split(separator: "\n") == [#"{"event":"progress","finished":10,"total":10}"#] + last)

        for calls in [program.stdout, events.stdout] {
            let lines = calls.split(separator: "\n").map(String.init)
            #expect(lines.count == 22, "\(calls)")
            for k in 1...10 where lines.count == 22 {
                #expect(lines[2 * k - 2] == "progress \(k)/10")
                #expect(lines[2 * k - 1].hasPrefix("didPrefetch ") && lines[2 * k - 1].hasSuffix(" \(k)/10"))
            }
            #expect(lines.suffix(2) == ["didFinish 7, 3", "completion 10, 3"])
            let told = lines.filter { $0.hasPrefix("didPrefetch ") }.map { String($0.split(separator: " ")[1]) }
            #expect(told.sorted() == urls.sorted())
        }
        #expect(try await BatchCheck(queue: b.queue, batch: id).run() == [])
    }

    @Test("In a pipe: the counts of now, plain lines, then the summary")
    func plain() async throws {
        let b = try await RemoteBatch()
        try await b.submit(urls, as: "plain")
        for index in 0..<4 { try await b.settle("plain", index, urls[index]) }
        let watch = try await b.coord(["watch", "pl"])
        try await until { watch.stderr.contains("finished=4") }
        #expect(watch.stderr.contains("plain 40.0% finished=4 total=10 skipped=0 rate="), "\(watch.stderr)")
        for index in 4..<10 { try await b.settle("plain", index, urls[index], index == 7 ? .httpError : .hit) }
        #expect(await watch.wait() == .exited(3))
        #expect(watch.stderr.contains("plain 100.0% finished=10 total=10 skipped=1"))
        #expect(watch.stdout.hasPrefix("plain done: finished 10 of 10: 9 images, 1 skipped ("))
        #expect(watch.stdout.contains("failed URLs:  "))
        #expect(!(watch.stdout + watch.stderr).contains("\u{1B}") && !watch.stderr.contains("\r"))
        // With everything there the exit code is 0.
        try await b.submit(Array(urls.prefix(1)), as: "good")
        try await b.settle("good", 0, urls[0])
        let good = try await b.done(["watch"])
        #expect(good.stdout.hasPrefix("good done: finished 1 of 1: 1 image, 0 skipped\n"))
    }

    @Test("Ctrl-C only stops watching, and says how to come back; a cancelled batch ends with 4")
    func detach() async throws {
        let b = try await RemoteBatch()
        try await b.submit(urls, as: "long")
        try await b.settle("long", 3, urls[3])
        for arguments in [["watch", "long", "--json"], ["watch", "long"]] {
            let watch = try await b.coord(arguments)
            try await until { (watch.stdout + watch.stderr).contains("\n") }
            watch.signal(SIGINT)
            #expect(await watch.wait() == .exited(130))
            #expect(watch.stderr.contains("long runs on; come back with: "))
            #expect(watch.stderr.contains("watch long --redis unix:///"))
        }
        let watch = try await b.coord(["watch", "long", "--json"])
        try await until { watch.stdout.contains("\n") }
        b.redis.freeze()
        watch.signal(SIGTERM)
        #expect(await watch.wait() == .exited(143))
        b.redis.thaw()
        let cancelled = try await b.coord(["watch", "long", "--json", "--from-start"])
        try await until { cancelled.stdout.contains("progress") }
        try await b.done(["cancel", "long", "--yes"])
        #expect(await cancelled.wait() == .exited(4))
        let lines = cancelled.stdout.split(separator: "\n")
        #expect(lines.count == 22)
        #expect(lines.count { $0.hasSuffix(#""outcome":"cancelled"}"#) } == 9)
        #expect(lines.suffix(2).first == #"{"event":"didFinish","totalCount":1,"skippedCount":9}"#)
    }

    @Test("A reader that goes away ends it quietly, also while nothing happens; a full disk is 74")
    func output() async throws {
        let b = try await RemoteBatch()
        try await b.submit(urls, as: "out")
        try await b.settle("out", 0, urls[0])
        let piped = try await b.shell(
            "set -o pipefail; \(b.coordWords("watch out --json --from-start")) | head -n 1")
        #expect(await piped.wait() == .exited(0))
        #expect(piped.stdout == #"{"event":"progress","finished":1,"total":10}"# + "\n")
        #expect(piped.stderr == "")
        let full = try await b.shell("\(b.coordWords("watch out --json --from-start")) > /dev/full")
        #expect(await full.wait() == .exited(74))
        #expect(full.stderr.contains("cannot write the result: No space left on device"))
        for index in 1..<10 { try await b.settle("out", index, urls[index], .httpError) }
        let summary = try await b.shell("\(b.coordWords("watch out")) > /dev/full")
        #expect(await summary.wait() == .exited(74))
    }

    @Test("Without its list a batch shows its counts; the URLs need the list")
    func withoutList() async throws {
        let b = try await RemoteBatch()
        try await b.submit(urls, as: "gone")
        #expect(rename(b.folder.path("gone.txt"), b.folder.path("moved.txt")) == 0)
        for index in 0..<10 { try await b.settle("gone", index, urls[index], index == 0 ? .httpError : .downloaded) }
        try await b.done(["watch", "gone"], 3)
        let events = try await b.done(["watch", "gone", "--json", "--from-start"], 65)
        #expect(events.stderr.contains("there is no copy of it") && events.stdout == "")
        #expect(rename(b.folder.path("moved.txt"), b.folder.path("gone.txt")) == 0)
        let moved = try await b.done(["watch", "gone", "--json", "--from-start"], 3)
        expectEvents(moved.stdout, of: urls, skipped: [urls[0]])
        for (arguments, code) in [(["--from-start"], 64), (["none", "--json"], 66)]
            as [([String], Int32)]
        {
            #expect(await (try await b.coord(["watch"] + arguments)).wait() == .exited(code))
        }
    }

    @Test("A slot belongs to its newest batch; cancel takes it by the slot")
    func slots() async throws {
        let b = try await RemoteBatch()
        try await b.submit(urls, as: "one", ["--slot", "home"])
        try await b.submit(urls, as: "other", ["--slot", "list"])
        let second = try await b.submit(urls, as: "two", ["--slot", "home"])
        #expect(second.stderr.contains("cancelled one, which had the slot home"))
        let status = try await b.done(["status", "--json"])
        #expect(status.stdout.contains(#""id":"one","state":"cancelled""#))
        #expect(status.stdout.contains(#""id":"two","state":"running""#))
        #expect(status.stdout.contains(#""id":"other","state":"running""#))
        #expect(status.stdout.components(of: #""slot":"home""#) == 2)
        let plain = try await b.submit(urls, as: "plain", [])
        #expect(!plain.stderr.contains("cancelled"))
        let one = try await b.done(["status", "plain", "--json"])
        #expect(one.stdout.contains(#""slot":null"#))
        let cancel = try await b.done(["cancel", "--slot", "home", "--yes"])
        #expect(cancel.stdout.hasPrefix("two cancelled"))
        let none = try await b.done(["cancel", "--slot", "home", "--yes"], 66)
        #expect(none.stderr.contains("no running batch has the slot 'home'"))
        try await b.done(["cancel", "other", "--slot", "list", "--yes"], 64)
        #expect(try await b.queue.catalog.running() == ["other", "plain"])
    }
}

extension String {
    /// How often a text stands in it.
    func components(of text: String) -> Int { ranges(of: text).count }
}
