import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import Threading
import WebImage

/// `pause`, `resume` and `set`, as a person types them while real workers run.
@Suite("Control of the queue", .timeLimit(.minutes(5)))
struct ControlTests {
    /// Waits for so many heartbeats of the workers, or until something holds; a heartbeat moves the end of a lease.
    /// - Returns: how many came.
    @discardableResult
    private func heartbeats(
        _ most: Int, _ remote: RemoteBatch, unless isOver: () -> Bool = { false }
    ) async throws -> Int {
        // Names, and the ends of their leases.
        var (seen, first): (Set<String>, Int) = ([], 0)
        try await until {
            let leases =
                try await remote.queue.connection.command([
                    "ZRANGE", RedisArgument(remote.queue.keys.workers), "0", "-1", "WITHSCORES",
                ]).array ?? []
            first = leases.count
            seen.formUnion(leases.compactMap(\.string))
            return isOver() || seen.count - first >= most
        }
        return seen.count - first
    }

    @Test(
        "No request starts two heartbeats after a pause, of a batch, the queue or the worker, nor after a cancel; all else counts",
        arguments: ["pause slow", "pause --all", "pause --worker", "cancel slow --yes"])
    func stopsWithinTwoSeconds(command: String) async throws {
        let remote = try await RemoteBatch()
        let origin = try OriginServer.pictures(delay: 0.1)
        let urls = (0..<5_000).map { origin.url("/\($0).png") }
        try await remote.submit(urls, as: "slow", ["--window", "all"])
        // A heartbeat a second, idle ones too.
        let worker = try #require(try await remote.workers(1, ["--lease", "3s"], isBurst: false).first)
        try await until { origin.requestCount() >= 50 }
        var words = command.split(separator: " ").map(String.init)
        if command.hasSuffix("--worker") { words.append(try #require(try await remote.queue.workers.names().first)) }
        try await remote.done(words)
        // The second one was begun after the command; what was in flight then ends.
        try await heartbeats(2, remote)
        try await until { origin.currentRequestCount == 0 }
        let asked = origin.requestCount()
        try await until {
            try await remote.queue.views.snapshot().workers.values.allSatisfy { $0.report.inFlight == 0 }
        }
        try await heartbeats(2, remote)
        #expect(origin.requestCount() == asked)
        let status = try #require(try await remote.queue.batches.status(of: "slow"))
        guard command.hasPrefix("pause") else {
            #expect(status.state == .cancelled && status.counts.finished == 5_000)
            worker.signal(SIGTERM)
            #expect(await worker.wait() == .exited(0))
            return
        }
        // Everything that was asked for ended and counts, and every open URL is on the list.
        #expect(status.counts.finished == asked && status.counts[.downloaded] == asked)
        #expect(try await BatchCheck(queue: remote.queue, batch: "slow").run() == [])
        #expect(try await remote.queue.connection.command(["EXISTS", "prefetch:{default}:b:slow:tries"]).int == 0)
        #expect(worker.isRunning)
        try await remote.done(["resume"] + words.dropFirst())
        #expect(try await heartbeats(3, remote) { origin.requestCount() > asked } < 3)
        try await remote.done(["cancel", "slow", "--yes"])
        worker.signal(SIGTERM)
        #expect(await worker.wait() == .exited(0))
        // Nothing was asked for twice.
        #expect(Set(origin.requests.map(\.path)).count == origin.requestCount())
    }

    @Test("Workers of a paused queue sleep: they use next to no processor time, also where batches wait")
    func sleepersUseNoTime() async throws {
        let remote = try await RemoteBatch()
        try await remote.done(["pause", "--all"])
        try await remote.submit((0..<100).map { "http://127.0.0.1:9/\($0).png" }, as: "b")
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"), ["--redis", remote.redis.url, "--cache", remote.folder.path("cache")])
        func ticks() -> Int {
            let text = String(decoding: readFile("/proc/\(worker.pid)/stat") ?? [], as: UTF8.self)
            let fields = text.split(separator: " ")
            return fields.count > 14 ? (Int(fields[13]) ?? 0) + (Int(fields[14]) ?? 0) : 0
        }
        try await until {
            try await remote.queue.workerRecords.all().contains { $0.report.maxConcurrentDownloads != nil }
        }
        let (began, before) = (clockSeconds(), ticks())
        try await until { clockSeconds() - began > 4 }
        // Ticks are hundredths of a second: under 2.5 % of one core, four heartbeats included.
        #expect(ticks() - before <= 10)
        #expect(try await remote.queue.batches.status(of: "b")?.counts.finished == 0)
        worker.signal(SIGTERM)
        #expect(await worker.wait() == .exited(0))
    }

    @Test("What is paused is said: by pause and resume themselves, status, workers, and by watch while it waits")
    func words() async throws {
        let remote = try await RemoteBatch()
        let origin = try OriginServer.pictures(delay: 0)
        try await remote.submit((0..<10).map { origin.url("/\($0).png") }, as: "b")
        let paused = try await remote.done(["pause"])
        #expect(paused.stdout == "paused b at 0.0%, 0 of 10 finished\n")
        #expect(paused.stderr.contains("resume with: ") && paused.stderr.contains(" resume b --redis "))
        #expect(try await remote.done(["pause", "b"]).stdout == "b is paused already\n")
        #expect(try await remote.done(["status"]).stdout.contains("b  paused  0.0%  finished 0 of 10"))
        #expect(
            try await remote.done(["status", "b"]).stdout.contains("  paused; resume it with: prefetch-coord resume b")
        )
        let json = try await remote.done(["status", "--json"]).stdout
        #expect(json.contains(#""queue":{"name":"default","paused":false,"max_concurrent_downloads":null}"#))
        #expect(json.contains(#""sealed":true,"paused":true"#))
        let queue = try await remote.done(["pause", "--all"]).stdout
        #expect(queue == "paused the queue 'default' with 1 running batch and 0 workers\n")
        #expect(
            try await remote.done(["status"]).stdout.hasPrefix(
                "the queue is paused; resume it: prefetch-coord resume --all"))
        let watch = try await remote.coord(["watch", "b"])
        try await until { watch.stderr.contains("paused=batch") }
        let resumed = try await remote.done(["resume", "b"])
        #expect(resumed.stdout == "resumed b at 0.0%, 0 of 10 finished\n")
        #expect(resumed.stderr.contains("the queue is paused; resume it: prefetch-coord resume --all"))
        #expect(try await remote.done(["status", "--json"]).stdout.contains(#""paused":true,"max_conc"#))
        // A worker comes to the paused queue, is paused itself, and then everything is let go.
        let worker = try #require(try await remote.workers(1, ["--max-concurrent-downloads", "32"]).first)
        try await until { try await remote.queue.workers.names().count == 1 }
        let name = try #require(try await remote.queue.workers.names().first)
        let prefix = String(name.dropLast())
        #expect(try await remote.done(["pause", "--worker", prefix]).stdout == "paused worker \(name)\n")
        // Its record may be one heartbeat old.
        try await until { try await remote.done(["workers"]).stdout.contains("\(name)  running, paused  0/32 ") }
        let record = try await remote.done(["workers", "--json"]).stdout
        #expect(
            record.contains(#""paused":true"#) && record.contains(#""max_concurrent_downloads":32"#), "\(record)")
        let all = try await remote.done(["resume", "--all"])
        #expect(all.stderr.contains("every worker is paused: \(name)"))
        #expect(origin.requestCount() == 0)
        #expect(try await remote.done(["resume", "--worker", name]).stdout == "resumed worker \(name)\n")
        #expect(await worker.wait() == .exited(0))
        #expect(await watch.wait() == .exited(0))
        #expect(try await remote.done(["pause", "b"]).stdout == "b is done already\n")
        #expect(try await remote.done(["resume", "b"]).stdout == "b is done already\n")
        #expect(try await remote.done(["set", "b", "--priority", "low"]).stdout == "b is done already\n")
    }

    @Test("The number of transfers follows set within two heartbeats, seen at the origin")
    func concurrency() async throws {
        let remote = try await RemoteBatch()
        let origin = try OriginServer()
        // A byte now and then: one that is silent for a second is stalled, and another begins in its place. It is an image, for
        // what is none ends with its first bytes.
        let body = GeneratedImage.png(seed: 1, width: 64, height: 64)
        origin.setFallback { _ in OriginResponse(body: body, fault: .drip(bytes: 1, seconds: 0.1)) }
        try await remote.submit((0..<2000).map { origin.url("/\($0).png") }, as: "b")
        let workers = try await remote.workers(2, ["--max-concurrent-downloads", "4"])
        try await until { origin.requestCount() >= 8 }
        let said = try await remote.done(["set", "--all", "--max-concurrent-downloads", "20"])
        #expect(said.stdout == "all workers of queue 'default': at most 20 transfers in flight each\n")
        // Two of each worker.
        #expect(try await heartbeats(6, remote) { origin.requestCount() >= 40 } < 6)
        #expect(origin.currentRequestCount == 40)
        let name = try #require(try await remote.queue.workers.names().first)
        let one = try await remote.done(["set", "--worker", name, "--max-concurrent-downloads", "30"])
        #expect(one.stdout == "worker \(name): at most 30 transfers in flight\n")
        try await until { origin.requestCount() >= 50 }
        try await until { try await remote.done(["workers"]).stdout.contains("\(name)  running  30/30") }
        #expect(origin.requestCount() == 50)
        #expect(
            try await remote.done(["set", "--worker", name, "--max-concurrent-downloads", "auto"]).stdout
                == "worker \(name): auto: finds its number of transfers\n")
        try await until { try await remote.done(["workers"]).stdout.contains("/auto ") }
        #expect(
            try await remote.done(["set", "--worker", name, "--default"]).stdout
                == "worker \(name): 20 at once, as set with --all\n")
        #expect(
            try await remote.done(["set", "--all", "--default"]).stdout
                == "all workers of queue 'default': as they were started\n")
        try await until {
            try await remote.queue.workerRecords.all().allSatisfy { $0.report.maxConcurrentDownloads == 4 }
        }
        for worker in workers { worker.signal(SIGKILL) }
    }

    @Test("Wrong input gets two lines that help, and its exit code")
    func wrongInput() async throws {
        let remote = try await RemoteBatch()
        try await remote.submit(["http://127.0.0.1:9/a.png"], as: "b")
        #expect(try await remote.queue.workers.join(worker: "host:1", lease: 60_000, about: []))
        let cases: [([String], Int32, String)] = [
            (["pause", "none"], 66, "there is no batch 'none'"),
            (["resume", "none"], 66, "there is no batch 'none'"),
            (["set", "none", "--priority", "low"], 66, "there is no batch 'none'"),
            (["pause", "--worker", "x"], 66, "the workers that are there: host:1"),
            (["resume", "--worker", "x"], 66, "there is no worker 'x'"),
            (["set", "--worker", "x", "--default"], 66, "there is no worker 'x'"),
            (["pause", "b", "--all"], 64, "give one of: a batch, --all, --worker"),
            (["set", "b"], 64, "set a batch with --max-per-host, --rate-per-host, "),
            (["set", "b", "--default"], 64, "set a batch with --max-per-host, --rate-per-host, "),
            (["set", "b", "--all", "--default"], 64, "give one of: a batch, --worker NAME, --all"),
            (["set", "--all", "--priority", "low"], 64, "set workers with --max-concurrent-downloads"),
            (["set", "b", "--priority", "urgent"], 64, "urgent"),
            (["set"], 64, "give one of: a batch, --worker NAME, --all"),
            (["set", "--all"], 64, "set workers with --max-concurrent-downloads N|auto or --default"),
            (["set", "--all", "--max-concurrent-downloads", "0"], 64, "from 1 to 4096, not '0'"),
            (["set", "--worker", "host:1", "--max-concurrent-downloads", "4097"], 64, "from 1 to 4096, not '4097'"),
            (["set", "--all", "--max-concurrent-downloads", "3", "--default"], 64, "or --default"),
            (["workers", "sett"], 64, "sett"),
            (["pauze"], 64, "pause"),
        ]
        for (words, code, text) in cases {
            let child = try await remote.done(words, code)
            #expect(child.stderr.contains(text), "\(words): \(child.stderr)")
            #expect(child.stdout == "", "\(words)")
            if code == 66 { #expect(child.stderr.split(separator: "\n").count == 2, "\(child.stderr)") }
        }
        let moved = try await remote.done(["set", "b", "--priority", "low", "--order", "lifo"])
        #expect(moved.stdout == "b  priority low, was normal  order lifo, was fifo\n")
        #expect(
            try await remote.queue.connection.command(["LRANGE", "prefetch:{default}:ready:low", "0", "-1"]).array?
                .count == 1)
    }
}
