import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

/// A fleet in which one disk stays broken, all are full, or one file cannot be stored.
@Suite("Disks that stay sick", .timeLimit(.minutes(5)))
struct SickDiskTests {
    /// What breaks: calls on the cache's files that the library refuses.
    private static func faults(
        _ bench: FaultBench, _ call: String, _ kind: String, _ error: Int32, cache: String = "sick"
    ) async throws -> [String: String] {
        [
            "LD_PRELOAD": try await bench.preloaded("scripts/lib/matrix/file_faults.c"),
            "FAULT_ROOT": bench.folder.path(cache), "FAULT_CALL": call, "FAULT_KIND": kind, "FAULT_DO": "\(error)",
            "FAULT_LOG": bench.folder.path("calls"),
        ]
    }

    private func claims(_ bench: FaultBench, of worker: String) async throws -> Int {
        let names = try await bench.redis("HKEYS", bench.queue.keys.owned(by: worker)).array ?? []
        return names.compactMap(\.string).count { !$0.hasPrefix("#") }
    }

    /// A sick worker has claimed jobs when a healthy one comes; that one ends all.
    private func check(_ bench: FaultBench, sick: ChildProcess) async throws {
        try await bench.submit(200)
        try await until { sick.stderr.contains("paused: ") }
        let name = try #require(try await bench.queue.workers.names().first)
        let healthy = try await bench.workers(1, ["--cache", bench.folder.path("healthy")])
        try await until { try await bench.queue.batches.status(of: "urls")?.state == .done }
        let counts = try #require(try await bench.queue.batches.status(of: "urls")).counts
        #expect(counts[.downloaded] == 200 && counts.finished == 200, "\(counts)")
        #expect(try await bench.queue.failedURLs.count() == 0)
        // It says so, and takes no part in what comes next.
        try await until {
            try await bench.done(["workers"]).stdout.contains("; its jobs went back to the queue")
        }
        try await until { try await claims(bench, of: name) == 0 }
        let before = bench.origin.requestCount()
        try await bench.submit(64, "next")
        try await until { try await bench.queue.batches.status(of: "next")?.state == .done }
        #expect(try await bench.queue.batches.status(of: "next")?.counts[.downloaded] == 64)
        #expect(bench.origin.requestCount() == before + 64)
        let both = try await bench.queue.results.workerCounts(of: "next")
        #expect(both.count == 1 && both[name] == nil, "\(both)")
        try await bench.leave(healthy + [sick])
        let fsck = try await bench.done(["fsck"])
        #expect(fsck.stdout.hasSuffix("everything agrees\n"), "\(fsck)")
    }

    @Test(
        "A worker whose disk fails for good gives its jobs back after a lease, and claims nothing more",
        arguments: [
            ("linkat", "v1/x/x/image", EIO), ("fsetxattr", "v1/x/x/unnamed", ENOSPC),
            ("openat2", "v1/x/x/image", EIO), ("linkat", "v1/x/x/image", EROFS), ("syncfs", ".", EIO),
        ])
    func lasting(call: String, kind: String, error: Int32) async throws {
        let bench = try await FaultBench()
        let environment = try await Self.faults(bench, call, kind, error)
        let sick = try await bench.workers(1, ["--cache", bench.folder.path("sick")], environment: environment)[0]
        try await check(bench, sick: sick)
        guard call == "syncfs" else { return }
        // Some seconds: a failed call is not repeated at once.
        let calls = String(decoding: bench.folder.read("calls") ?? [], as: UTF8.self).split(separator: "\n")
        #expect((1...60).contains(calls.count { $0 == "syncfs ." }), "\(calls.count { $0 == "syncfs ." })")
    }

    @Test("Files that may not become as large as the images are a fault of the machine, and no death of the worker")
    func fileSize() async throws {
        let bench = try await FaultBench()
        let image = GeneratedImage.png(seed: 3, width: 8, height: 8) + [UInt8](repeating: 1, count: 200_000)
        bench.origin.setFallback { _ in OriginResponse(body: image) }
        let sick = try await ChildProcess(
            "/usr/bin/env",
            [
                "prlimit", "--fsize=131072", builtProduct("prefetch-worker"), "--redis", bench.redis.url, "--cache",
                bench.folder.path("sick"), "--allow-net", "127.0.0.0/8", "--lease", "2s",
                "--max-concurrent-downloads", "8",
            ])
        try await check(bench, sick: sick)
    }

    @Test(
        "One file that nobody can store ends as notStored, without a word to the blacklist, and all others go on",
        arguments: [1, 2])
    func oneFile(workers count: Int) async throws {
        let bench = try await FaultBench()
        let url = bench.origin.url("/urls/50.png")
        var environment = try await Self.faults(bench, "linkat", "v1/x/x/image", EIO, cache: "cache")
        environment["FAULT_NAME"] = String(CacheKey(url).path.suffix(62))
        let workers = try await bench.workers(count, environment: environment)
        try await bench.untilReady(workers)
        try await bench.done(["submit", bench.list(120), "--name", "urls", "--job-size", "8", "--wait"], 74)
        let counts = try #require(try await bench.queue.batches.status(of: "urls")).counts
        #expect(counts[.downloaded] == 119 && counts[.notStored] == 1 && counts.finished == 120, "\(counts)")
        #expect((2...3).contains(bench.origin.requestCount("/urls/50.png")))
        // One for each of the others, and some for the first bytes of images that are there: whether the network is out of order.
        let others = bench.origin.requestCount() - bench.origin.requestCount("/urls/50.png")
        #expect((119...134).contains(others))
        #expect(try await bench.queue.failedURLs.count() == 0)
        let failures = try await bench.done(["failures", "urls"])
        #expect(failures.stdout.contains("notStored") && failures.stdout.contains("Input/output error"), "\(failures)")
        #expect(!workers.contains { $0.stderr.contains("paused: ") })
        // What one cache cannot store is no failure of the URL: elsewhere it is fetched.
        try await bench.leave(workers)
        #expect(try await bench.done(["fsck"]).stdout.hasSuffix("everything agrees\n"))
        try await bench.done(["retry", "urls"])
        let elsewhere = try await bench.workers(1, ["--cache", bench.folder.path("elsewhere"), "--burst"])[0]
        #expect(await elsewhere.wait() == .exited(0), "\(elsewhere.stderr)")
        let newest = try #require(try await bench.queue.catalog.newest(1).ids.last)
        #expect(try await bench.queue.batches.status(of: newest)?.counts[.downloaded] == 1)
    }

    @Test("A burst with a sick disk ends when others have done the rest")
    func burst() async throws {
        let bench = try await FaultBench()
        let environment = try await Self.faults(bench, "linkat", "v1/x/x/image", EROFS)
        try await bench.submit(100)
        let sick = try await bench.workers(
            1, ["--burst", "--cache", bench.folder.path("sick")], environment: environment)[0]
        try await until { sick.stderr.contains("paused: ") }
        let healthy = try await bench.workers(1, ["--cache", bench.folder.path("healthy")])
        #expect(await sick.wait() == .exited(0), "\(sick.stderr)")
        #expect(try await bench.queue.batches.status(of: "urls")?.counts[.downloaded] == 100)
        try await bench.leave(healthy)
    }

    @Test("A file that one worker cannot store is stored by another")
    func elsewhere() async throws {
        let bench = try await FaultBench()
        var environment = try await Self.faults(bench, "linkat", "v1/x/x/image", EIO)
        environment["FAULT_NAME"] = String(CacheKey(bench.origin.url("/urls/7.png")).path.suffix(62))
        let sick = try await bench.workers(1, ["--cache", bench.folder.path("sick")], environment: environment)
        // One that works, and has not come to it yet.
        #expect(try await bench.queue.workers.join(worker: "busy", lease: 60_000, about: []))
        try await bench.submit(8)
        try await bench.untilFinished(7)
        try await until { try await bench.redis("HVALS", bench.queue.keys.tries("urls")).array?.isEmpty == false }
        let healthy = try await bench.workers(1, ["--cache", bench.folder.path("healthy")])
        try await until { try await bench.queue.batches.status(of: "urls")?.state == .done }
        #expect(try await bench.queue.batches.status(of: "urls")?.counts.skipped == 0)
        #expect(bench.origin.requestCount("/urls/7.png") == 2)
        try await bench.queue.jobs.release(worker: "busy", leaving: true)
        try await bench.leave(sick + healthy)
    }

    @Test(
        "While every disk is full the jobs lie in the queue, nobody is asked for an image, and no end is promised",
        .enabled(if: LoopFileSystem.isPermitted, "this machine permits no mount"))
    func allFull() async throws {
        let bench = try await FaultBench()
        let image = GeneratedImage.png(seed: 3, width: 8, height: 8) + [UInt8](repeating: 1, count: 65_536)
        bench.origin.setFallback { _ in OriginResponse(body: image) }
        let disks = [TemporaryDirectory(), TemporaryDirectory()]
        for disk in disks { #expect(LoopFileSystem.shell("mount -t tmpfs -o size=700k none '\(disk.path)'")) }
        defer { for disk in disks { umount2(disk.path, Int32(MNT_DETACH)) } }
        var workers: [ChildProcess] = []
        for disk in disks { workers += try await bench.workers(1, ["--cache", disk.path("cache")]) }
        try await bench.untilReady(workers)
        try await bench.submit(100)
        try await until {
            let text = try await bench.done(["workers"]).stdout
            return text.split(separator: "\n").count { $0.contains("; its jobs went back to the queue") } == 2
        }
        let names = try await bench.queue.workers.names()
        try await until {
            for name in names where try await claims(bench, of: name) > 0 { return false }
            return true
        }
        let status = try await bench.done(["status"]).stdout
        #expect(!status.contains("ETA") && !status.contains("URLs/s"), "\(status)")
        // Several probes of each.
        let before = bench.origin.requestCount()
        try await Task.sleep(for: .seconds(8))
        #expect(bench.origin.requestCount() <= before + 16)
        for disk in disks { #expect(LoopFileSystem.shell("mount -o remount,size=64m '\(disk.path)'")) }
        try await until { try await bench.queue.batches.status(of: "urls")?.state == .done }
        let counts = try #require(try await bench.queue.batches.status(of: "urls")).counts
        #expect(counts[.downloaded] == 100 && counts.skipped == 0, "\(counts)")
        try await bench.leave(workers)
        #expect(try await bench.done(["fsck"]).stdout.hasSuffix("everything agrees\n"))
    }
}
