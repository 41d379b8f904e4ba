import Foundation
import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import Threading
import WebImage

/// Whatever a person or a program is shown adds up, while workers are killed and stopped. How long by the environment: TEST_TOTALS_SECONDS=60.
@Suite("Totals in a storm", .timeLimit(.minutes(5)))
struct TotalsTests {
    private static let seconds = Int(ProcessInfo.processInfo.environment["TEST_TOTALS_SECONDS"] ?? "") ?? 6

    /// Three workers at a time; one of them is killed each second, one stopped past its lease every three.
    private func storm(
        _ b: RemoteBatch, until isOver: Locked<Bool>, seed: UInt64
    ) async throws -> (kills: Int, stops: Int) {
        var random = SplitMix64(state: seed)
        let options = ["--lease", "2s", "--max-concurrent-downloads", "8"]
        var workers = try await b.workers(3, options)
        var stopped: (worker: ChildProcess, until: ContinuousClock.Instant)?
        var (kills, stops) = (0, 0)
        var (kill, stop) = (ContinuousClock.now + .seconds(1.5), ContinuousClock.now + .seconds(2))
        while !isOver.withLock({ $0 }) {
            let now = ContinuousClock.now
            if let freed = stopped, now >= freed.until {
                freed.worker.signal(SIGCONT)
                stopped = nil
                stop = now + .seconds(1)
            }
            if now >= kill, stops > 0 {
                // The one that stands still is to wake.
                let index = Int(random.next() % UInt64(workers.count))
                if workers[index].pid != stopped?.worker.pid {
                    workers[index].signal(SIGKILL)
                    await workers[index].wait()
                    workers[index] = try await b.workers(1, options)[0]
                    kills += 1
                }
                kill = now + .milliseconds(700 + Int(random.next() % 600))
            }
            if stopped == nil, now >= stop {
                let worker = workers[Int(random.next() % UInt64(workers.count))]
                worker.signal(SIGSTOP)
                stopped = (worker, now + .milliseconds(2_500))
                stops += 1
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        stopped?.worker.signal(SIGCONT)
        for worker in workers { worker.signal(SIGTERM) }
        for worker in workers { await worker.wait() }
        return (kills, stops)
    }

    @Test(
        "Workers, causes, hosts and outcomes add up to the batch in every frame and in every JSON, also of what watch tells"
    )
    func totals() async throws {
        let b = try await RemoteBatch()
        let origin = try OriginServer()
        let good = OriginResponse(body: GeneratedImage.png(seed: 3, width: 8, height: 8), delay: 0.01)
        let missing = OriginResponse(status: 404, delay: 0.01)
        let gone = OriginResponse(status: 410)
        origin.setFallback { $0.path.hasSuffix(".png") ? good : $0.path.hasSuffix(".gone") ? gone : missing }
        let port = try #require(origin.url("").split(separator: ":").last)
        // More than there is time for: three workers of eight transfers at a time make 2,400 in a second at most.
        let urls = (0..<Self.seconds * 2_400).map { index -> String in
            let base = index % 3 == 0 ? "http://localhost:\(port)" : origin.url("")
            switch index % 50 {
            case 7: return "no url \(index)"
            case 8, 9, 10: return "\(base)/\(index).bad"
            case 11: return "\(base)/\(index).gone"
            case 12: return "http://10.0.0.1/\(index)"
            default: return "\(base)/\(index).png"
            }
        }
        try await b.submit(urls, as: "storm", ["--window", "all", "--max-per-host", "0"])
        try await b.keepDetails(500, of: "storm")
        let watch = try await b.coord(["watch", "storm", "--json", "--from-start"])
        let seed = UInt64.random(in: 0..<1_000_000)
        let isOver = Locked(false)
        let began = ContinuousClock.now
        async let damage = storm(b, until: isOver, seed: seed)
        let tmux = try await Tmux(columns: 120, rows: 40, environment: ["NO_COLOR": "1"])
        try await tmux.type("exec " + b.coordWords("dash storm --refresh 0.2"))
        try await tmux.wait(for: "RUNNING")
        var (frames, objects) = (0, 0)
        while ContinuousClock.now - began < .seconds(Self.seconds) || frames < 9 || objects < 9 {
            // As it stands on a terminal, held still so that it is one frame; then as text of its own, and for programs.
            try await tmux.press("1", "Space")
            // The last row: those above are drawn by then, and not once more.
            try await tmux.wait(for: "frozen; Space continues")
            frames += try check(try await tmux.rows, seed)
            try await tmux.press("Space")
            try await until { try await !tmux.text.contains("FROZEN") }
            for size in ["120x40", "80x24"] {
                let once = try await b.done(["dash", "storm", "--once", "--size", size])
                frames += try check(
                    once.stdout.split(separator: "\n", omittingEmptySubsequences: false).map(String.init), seed)
            }
            objects += try await readings(b, seed)
        }
        isOver.withLock { $0 = true }
        let (kills, stops) = try await damage
        print("totals: seed \(seed), \(frames) frames, \(objects) objects, \(kills) workers killed, \(stops) stopped")
        #expect(kills > 0 && stops > 0 && frames >= 9 && objects >= 9, "seed \(seed)")
        #expect(await (try await b.ended(["cancel", "storm", "--yes"])).wait() == .exited(0))
        let once = try await b.coord(["dash", "storm", "--once", "--size", "120x40"])
        await once.wait()
        _ = try check(once.stdout.split(separator: "\n", omittingEmptySubsequences: false).map(String.init), seed)
        _ = try await readings(b, seed)
        #expect(await watch.wait() == .exited(4), "\(watch.stderr)")
        try await told(watch.stdout, b)
        #expect(await (try await b.ended(["fsck", "storm"])).wait() == .exited(0))
    }

    /// The first view as lines: what its parts come to.
    private func check(_ lines: [String], _ seed: UInt64) throws -> Int {
        let comment = Comment(rawValue: "seed \(seed):\n" + lines.joined(separator: "\n"))
        func number(_ text: Substring) -> Int { Int(text.filter(\.isNumber)) ?? -1 }
        let head = try #require(
            lines.compactMap { $0.firstMatch(of: /^   finished ([0-9,]+) \/ ([0-9,]+)   skipped ([0-9,]+)/) }.first,
            comment)
        let (finished, skipped) = (number(head.1), number(head.3))
        let images = try #require(
            lines.compactMap { $0.firstMatch(of: /downloaded ([0-9,]+)   hit ([0-9,]+)   notModified ([0-9,]+)/) }
                .first, comment)
        #expect(number(images.1) + number(images.2) + number(images.3) + skipped == finished, comment)
        // Workers, one a row below the names of the columns, up to the rule.
        let top = try #require(lines.firstIndex { $0.hasPrefix(" WORKER") }, comment)
        let names = Array(lines[top])
        var sums = (finished: 0, skipped: 0)
        for line in lines[(top + 1)...].prefix(while: { !$0.hasPrefix("─") }) {
            sums.finished += value(Array(line), under: "FINISHED", of: names)
            sums.skipped += value(Array(line), under: "SKIPPED", of: names)
        }
        #expect(sums == (finished, skipped), comment)
        // Causes and hosts side by side.
        let middle = try #require(lines.firstIndex { $0.hasPrefix(" SKIPPED BY CAUSE") }, comment)
        let titles = Array(lines[middle])
        let wall = try #require(titles.lastIndex(of: "│"), comment)
        #expect(number(Substring(String(titles[..<wall]))) == skipped, comment)
        var (causes, hosts) = (0, 0)
        for line in lines[(middle + 1)...].map(Array.init) {
            guard line.indices.contains(wall), line[wall] == "│" else { break }
            if let last = String(line[..<wall]).split(separator: " ").last { causes += number(last) }
            hosts += value(line, under: "DONE", of: titles)
        }
        #expect(causes == skipped, comment)
        #expect(hosts == finished, comment)
        return 1
    }

    /// The number whose last digit stands below the last letter of a column's name; 0 where there is none.
    private func value(_ line: [Character], under name: String, of titles: [Character]) -> Int {
        guard let range = String(titles).range(of: name) else { return 0 }
        let end = String(titles).distance(from: String(titles).startIndex, to: range.upperBound)
        guard end <= line.count else { return 0 }
        let text = String(line[..<end].reversed().prefix { $0.isNumber || $0 == "," }.reversed())
        return Int(text.filter(\.isNumber)) ?? 0
    }

    /// `status BATCH`, `status`, `workers` as JSON: how many were looked at.
    private func readings(_ b: RemoteBatch, _ seed: UInt64) async throws -> Int {
        func object(_ words: String...) async throws -> [String: Any] {
            let child = try await b.done(words + ["--json"])
            return try #require(try JSONSerialization.jsonObject(with: Data(child.stdout.utf8)) as? [String: Any])
        }
        func check(_ batch: [String: Any]) throws {
            let comment = Comment(rawValue: "seed \(seed): \(batch)")
            let outcomes = try #require(batch["outcomes"] as? [String: Int])
            let finished = try #require(batch["finished"] as? Int)
            let skipped = try #require(batch["skipped"] as? Int)
            #expect(outcomes.values.reduce(0, +) == finished, comment)
            let images: Set = ["downloaded", "hit", "notModified"]
            #expect(outcomes.filter { !images.contains($0.key) }.values.reduce(0, +) == skipped, comment)
            for list in ["by_worker", "by_host"] {
                guard let rows = batch[list] as? [[String: Any]] else { continue }
                func sum(_ name: String) -> Int { rows.reduce(0) { $0 + ($1[name] as? Int ?? 0) } }
                #expect(
                    sum("finished") == finished && sum("skipped") == skipped && sum("bytes") == batch["bytes"] as? Int,
                    comment)
                // A rest that makes up for what is there twice would be less than nothing.
                #expect(
                    rows.allSatisfy { $0["finished"] as? Int ?? -1 >= 0 && $0["skipped"] as? Int ?? -1 >= 0 }, comment)
                // While it runs, whoever ended a URL is a worker.
                if batch["state"] as? String == "running", list == "by_worker" {
                    #expect(rows.allSatisfy { $0["worker"] is String }, comment)
                }
            }
            let statuses = try #require(batch["http_statuses"] as? [String: Int] ?? [:])
            #expect(statuses.values.reduce(0, +) <= outcomes["httpError"] ?? 0, comment)
        }
        func batch(_ object: [String: Any]) throws -> [String: Any] {
            try #require((object["batches"] as? [[String: Any]])?.first { $0["id"] as? String == "storm" })
        }
        let before = try batch(try await object("status", "storm"))
        #expect(before["by_worker"] != nil && before["by_host"] != nil)
        try check(before)
        let workers = try #require(try await object("workers")["workers"] as? [[String: Any]])
        let after = try batch(try await object("status"))
        try check(after)
        // Those that are gone are among them: together they are the batch as it was between the two readings.
        for name in ["finished", "skipped"] where after["state"] as? String == "running" {
            let sum = workers.reduce(0) { $0 + ($1[name] as? Int ?? 0) }
            let range = (before[name] as? Int ?? 0)...(after[name] as? Int ?? 0)
            #expect(range.contains(sum), "seed \(seed): \(name) \(sum) is not in \(range): \(workers)")
        }
        return 3
    }

    /// What `watch --json` told, against what the batch came to.
    private func told(_ text: String, _ b: RemoteBatch) async throws {
        let status = try #require(try await b.queue.batches.status(of: "storm"))
        var outcomes: [String: Int] = [:]
        var last = 0
        for line in text.split(separator: "\n") {
            let event = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            switch event["event"] as? String {
            case "progress":
                #expect(event["finished"] as? Int == last + 1)
                last += 1
            case "didPrefetchURL":
                #expect(event["finishedCount"] as? Int == last)
                outcomes[event["outcome"] as? String ?? "", default: 0] += 1
            case "completion":
                #expect(event["finishedCount"] as? Int == status.counts.finished)
                #expect(event["skippedCount"] as? Int == status.counts.skipped)
            default: break
            }
        }
        #expect(last == status.counts.finished && text.contains(#""event":"completion""#))
        for outcome in PrefetchOutcome.allCases {
            #expect(outcomes[outcome.name] ?? 0 == status.counts[outcome], "\(outcome)")
        }
    }
}
