import Glibc
import Origin
import Prefetch
import TestSupport
import Testing

@testable import WebImage

/// A cache with limits, and the processes that share it.
@Suite("Cache limits", .timeLimit(.minutes(5)))
struct CacheLimitTests: CommandSuite {
    private let body = [UInt8](repeating: 0x2A, count: 65_536)

    private func cache(_ folder: TemporaryDirectory) throws -> DiskCache {
        try DiskCache(directory: folder.path("cache"), configuration: DiskCache.Configuration(durability: .none))
    }

    private func fill(_ cache: DiskCache, _ range: Range<Int>, hours: Int) throws {
        let then = timespec(tv_sec: time(nil) - hours * 3600, tv_nsec: 0)
        let record = CacheRecord(level: .none, format: .unknown, length: 100, digest: nil, storedAt: then.tv_sec)
        for index in range {
            try cache.images.store(
                ImageBody([UInt8](repeating: 1, count: 100)), for: CacheKey("\(index)"), record: record)
            #expect(utimensat(AT_FDCWD, cache.images.path(of: CacheKey("\(index)")), [then, then], 0) == 0)
        }
    }

    /// What the images take of the disk.
    private func used(_ folder: TemporaryDirectory) -> Int {
        var sum = 0
        for name in folder.contents() where name.hasPrefix("cache/v1/") && !name.hasSuffix("/") {
            var status = stat()
            if lstat(folder.path(name), &status) == 0 { sum += Int(status.st_blocks) * 512 }
        }
        return sum
    }

    @Test("cache gc says what goes by which rule, cache ls --summary what is there")
    func commands() async throws {
        let folder = TemporaryDirectory()
        let disk = try cache(folder)
        try fill(disk, 0..<5, hours: 1)
        try fill(disk, 5..<8, hours: 50)
        let stat = try await ran(["cache", "ls", "--summary", "--cache", folder.path("cache"), "--json"])
        #expect(
            stat.stdout == #"{"v":1,"count":8,"bytes":800,"allocated_bytes":32768,"days":["#
                + #"{"day":0,"count":5,"bytes":500,"allocated_bytes":20480},"#
                + #"{"day":2,"count":3,"bytes":300,"allocated_bytes":12288}],"#
                + #""formats":{"unknown":{"count":8,"bytes":800,"allocated_bytes":32768}},"#
                + #""levels":{"none":{"count":8,"bytes":800,"allocated_bytes":32768}}}"# + "\n")
        let text = try await ran(["cache", "ls", "--summary", "--cache", folder.path("cache")])
        #expect(text.stdout.contains("\n2 days old         3  300 B    12 kB\n"))

        let none = try await ran(["cache", "gc", "--cache", folder.path("cache")], exits: 64)
        #expect(none.stderr.contains("without a rule"))
        let words = ["cache", "gc", "--max-age", "1d", "--max-size", "16384", "--cache", folder.path("cache")]
        let json =
            #""expired":{"count":3,"allocated_bytes":12288},"evicted":{"count":1,"allocated_bytes":4096},"unlisted":{"count":0,"allocated_bytes":0},"#
            + #""spared":{"count":0,"allocated_bytes":0},"remaining":{"count":4,"allocated_bytes":16384},"#
            + #""temporary_files":0,"moved_aside":0}"# + "\n"
        let dry = try await ran(words + ["--dry-run", "--json"])
        #expect(dry.stdout == #"{"v":1,"dry_run":true,"# + json)
        #expect(try disk.audit.count().images == 8)
        let asked = try await ran(words, exits: 78)
        #expect(
            asked.stderr
                == "error: cache gc would remove 4 images, 16 kB on disk, of 8 in \(folder.path("cache")); "
                + "standard input is not a terminal, so it cannot ask\nhint: add --yes to do it without a question\n")
        #expect(try disk.audit.count().images == 8)
        let gc = try await ran(words + ["-v", "--yes"])
        let lines = gc.stdout.split(separator: "\n")
        #expect(lines.filter { $0.hasPrefix("max-age: \(folder.path("cache"))/v1/") }.count == 3)
        #expect(lines.filter { $0.hasPrefix("max-size: ") }.count == 1)
        #expect(lines.suffix(3).first == "removed for --max-age: 3 images, 12 kB on disk")
        #expect(lines.last == "left: 4 images, 16 kB on disk")
        #expect(try disk.audit.count().images == 4)
        let all = try await ran(["cache", "gc", "--max-age", "0", "--cache", folder.path("cache")], exits: 78)
        #expect(
            all.stderr
                == "error: cache gc would remove 4 images, 16 kB on disk, everything in \(folder.path("cache")); "
                + "standard input is not a terminal, so it cannot ask\nhint: add --yes to do it without a question\n")
        #expect(try disk.audit.count().images == 4)
        try await ran(["cache", "gc", "--max-age", "1d", "--cache", folder.path], exits: 66)
        #expect(folder.contents().filter { !$0.hasPrefix("cache/") } == [])
    }

    @Test("cache gc --not-in leaves the images of its lists, and what was made of others")
    func mirror() async throws {
        let folder = TemporaryDirectory()
        let disk = try cache(folder)
        let base = "http://h.test"
        let keys = (0..<6).map { "\(base)/\($0).jpg" } + ["\(base)/1-64x64-cover-jpeg.jpg"]
        for key in keys {
            var record = CacheRecord(level: .none, format: .jpeg, length: 100, digest: nil, storedAt: 0)
            if key == keys[6] { record.original = OriginalImage(format: .png, width: 200, height: 100) }
            try disk.images.store(ImageBody([UInt8](repeating: 1, count: 100)), for: CacheKey(key), record: record)
        }
        folder.write(Array("# two of them\n\(keys[0])\n\(keys[2])\nnot a url\n".utf8), to: "a.txt")
        folder.write(Array("id,url\n7,\(keys[3])\n8,\(base)/none.jpg\n".utf8), to: "b.csv")
        folder.write(Array("#\n".utf8), to: "empty.txt")
        func there() -> [Bool] { keys.map { disk.existingPath(forKey: $0) != nil } }
        let words = [
            "cache", "gc", "--cache", folder.path("cache"), "--not-in", folder.path("a.txt"), "--not-in",
            folder.path("b.csv"),
        ]
        let plan = try await ran(words + ["--dry-run", "-v"])
        #expect(
            plan.stdout.hasSuffix(
                "would remove for --not-in: 3 images, 12 kB on disk\nwould be left: 4 images, 16 kB on disk\n"))
        #expect(plan.stdout.split(separator: "\n").count { $0.hasPrefix("not-in: ") } == 3)
        let unasked = try await ran(words, exits: 78)
        #expect(unasked.stderr.contains("would remove 3 images, 12 kB on disk, of 7 in"))
        try await ran(
            ["cache", "gc", "--cache", folder.path("cache"), "--yes", "--not-in", folder.path("empty.txt")], exits: 65)
        try await ran(
            ["cache", "gc", "--cache", folder.path("cache"), "--yes", "--not-in", folder.path("none.txt")], exits: 66)
        #expect(there() == [true, true, true, true, true, true, true])
        try await ran(words + ["--yes"])
        #expect(there() == [true, false, true, true, false, false, true])
        #expect(folder.contents().filter { !$0.hasPrefix("cache/") }.sorted() == ["a.txt", "b.csv", "empty.txt"])
    }

    @Test("A sweeper that is killed leaves nothing torn, and the next one takes over at once")
    func killed() async throws {
        let folder = TemporaryDirectory()
        let disk = try cache(folder)
        let count = 3_000
        try fill(disk, 0..<count, hours: 5)
        // Somebody fetches, so that the sweep goes slowly: 2,000 a second.
        var busy: CacheProtection? = try CacheProtection(disk)
        try busy?.set(since: Double(time(nil)) + 3600)
        let words = ["cache", "gc", "--max-age", "1h", "--yes", "--cache", folder.path("cache")]
        let first = try await coord(words + ["-v"])
        try await until { first.stdout.utf8.count > 20_000 }
        // However long the second one takes to start.
        first.signal(SIGSTOP)
        let second = try await ran(words, exits: 75)
        #expect(second.stderr.contains("another process is sweeping"))
        first.signal(SIGKILL)
        #expect(await first.wait() == .signalled(SIGKILL))
        let left = try disk.audit.count().images
        #expect(left > 0 && left < count)
        busy = nil
        let third = try await ran(words + ["--json"])
        #expect(third.stdout.contains(#""expired":{"count":\#(left),"#))
        #expect(try disk.account.usage() == (0, 0))
        #expect(folder.contents().filter { $0.contains(".t-") || $0.hasPrefix("cache/bad") } == [])
    }

    /// Workers that stay.
    private func workers(_ count: Int, _ remote: RemoteBatch, _ options: [String]) async throws -> [ChildProcess] {
        var workers: [ChildProcess] = []
        for _ in 0..<count {
            workers.append(
                try await ChildProcess(
                    builtProduct("prefetch-worker"),
                    [
                        "--redis", remote.redis.url, "--cache", remote.folder.path("cache"), "--allow-net",
                        "127.0.0.0/8", "--max-concurrent-downloads", "2",
                    ] + options))
        }
        return workers
    }

    private func origin() throws -> OriginServer {
        let origin = try OriginServer()
        let body = body
        origin.setFallback { _ in OriginResponse(body: body) }
        return origin
    }

    @Test("Eight processes that write four times the limit in eight batches, one after another, stay within it")
    func withinTheLimit() async throws {
        let remote = try await RemoteBatch()
        let origin = try origin()
        let limit = 4 << 20
        let workers = try await workers(8, remote, ["--cache-max-size", "4MiB"])
        // In flight: two of each process, fetched before the last check and stored after it.
        let most = limit + limit / 100 + 8 * 2 * body.count
        var written = 0
        var largest = 0
        var number = 0
        let size = 4 * limit / body.count / 8
        while written < 4 * limit {
            let urls = (0..<size).map { origin.url("/\(number)/\($0).png") }
            try await remote.submit(urls, as: "b\(number)", ["--validate", "none", "--durability", "none"])
            try await until {
                largest = max(largest, used(remote.folder))
                return try await remote.queue.batches.status(of: "b\(number)")?.state == .done
            }
            let counts = try #require(try await remote.queue.batches.status(of: "b\(number)")).counts
            #expect(counts[.downloaded] == size && counts.skipped == 0)
            // What a batch fetched is there when it ends.
            let disk = try cache(remote.folder)
            #expect(urls.allSatisfy { disk.existingPath(forKey: $0) != nil })
            written += size * body.count
            number += 1
        }
        #expect(number == 8)
        #expect(largest <= most, "\(largest) bytes at the most, the limit is \(limit)")
        #expect(largest > limit / 2)
        for worker in workers { worker.signal(SIGTERM) }
        for worker in workers { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }
        // Nobody sweeps any more.
        #expect(try cache(remote.folder).account.usage().size == used(remote.folder))
    }

    @Test(
        "A batch larger than the limit pauses and blames no URL, also after a lease; a larger limit heals it",
        arguments: [false, true])
    func tooSmall(lastsLonger: Bool) async throws {
        let remote = try await RemoteBatch()
        let origin = try origin()
        // More than the limit takes and than may wait for room.
        let urls = (0..<60).map { origin.url("/\($0).png") }
        try await remote.submit(urls, as: "big", ["--validate", "none"])
        let paused = try await workers(
            1, remote, ["--cache-max-size", "512KiB", "--lease", lastsLonger ? "2s" : "1m"])[0]
        try await until { paused.stderr.contains("paused: cache too small") }
        let stuck = try #require(try await remote.queue.batches.status(of: "big"))
        #expect(stuck.state == .running && stuck.counts.skipped == 0 && stuck.counts.finished < 60)
        #expect(paused.stderr.contains("--cache-max-size 524288"))
        if lastsLonger {
            // Its jobs lie in the queue, and it takes none.
            try await until {
                let workers = try await remote.ended(["workers"])
                await workers.wait()
                return workers.stdout.contains("; its jobs went back to the queue")
            }
            let requests = origin.requestCount()
            try await Task.sleep(for: .seconds(3))
            #expect(origin.requestCount() == requests)
        }
        paused.signal(SIGTERM)
        #expect(await paused.wait() == .exited(0))
        // Nothing of it was thrown away to make room for the rest of it.
        let disk = try cache(remote.folder)
        #expect(try disk.audit.count().images == origin.requestCount())
        #expect(origin.requestCount() < 60)
        let healed = try await remote.workers(1, ["--cache-max-size", "64MiB"])[0]
        #expect(await healed.wait() == .exited(0))
        let status = try #require(try await remote.queue.batches.status(of: "big"))
        #expect(status.state == .done && status.counts.finished == 60 && status.counts.skipped == 0)
        #expect(origin.requestCount() == 60)
    }

    @Test("Below --min-free a worker pauses, and nothing is lost")
    func minFree() async throws {
        let remote = try await RemoteBatch()
        let origin = try origin()
        try await remote.submit([origin.url("/a.png")], as: "one", ["--validate", "none"])
        let paused = try await workers(1, remote, ["--min-free", "9000000GB"])[0]
        try await until { paused.stderr.contains("less than --min-free") }
        #expect(origin.requestCount() == 0)
        paused.signal(SIGTERM)
        #expect(await paused.wait() == .exited(0))
        let burst = try await remote.workers(1, ["--min-free", "1"])[0]
        #expect(await burst.wait() == .exited(0))
        #expect(try await remote.queue.batches.status(of: "one")?.counts[.downloaded] == 1)
    }

    @Test("What a run counts as hit is there when it ends, however old; what it does not need goes")
    func hits() async throws {
        let folder = TemporaryDirectory()
        let origin = try OriginServer()
        let urls = (0..<8).map { origin.url("/\($0).png") }
        for index in 0..<8 {
            origin.route(
                "/\(index).png", OriginResponse(body: GeneratedImage.png(seed: UInt64(index), width: 16, height: 16)))
        }
        folder.write(Array(urls.map { $0 + "\n" }.joined().utf8), to: "urls.txt")
        // One that is not there yet: the run goes on until its worker has swept.
        var held = OriginResponse(body: GeneratedImage.png(seed: 9, width: 16, height: 16))
        held.fault = .stallBeforeHeader
        origin.route("/held.png", held)
        let some = urls.prefix(5) + [origin.url("/held.png")]
        folder.write(Array(some.map { $0 + "\n" }.joined().utf8), to: "some.txt")
        let words = ["--cache", folder.path("cache"), "-n", "1", "--allow-net", "127.0.0.0/8"]
        try await ran(["run", folder.path("urls.txt")] + words)
        let then = timespec(tv_sec: time(nil) - 48 * 3600, tv_nsec: 0)
        let disk = try cache(folder)
        for url in urls { #expect(utimensat(AT_FDCWD, disk.images.path(of: CacheKey(url)), [then, then], 0) == 0) }
        // A worker begins with a sweep, so some may have gone before they were asked for; those are fetched.
        let run = try await coord(["run", folder.path("some.txt"), "--cache-max-age", "1d"] + words)
        try await until {
            !run.isRunning || urls.suffix(3).allSatisfy { disk.existingPath(forKey: $0) == nil }
        }
        origin.release("/held.png")
        #expect(await run.wait() == .exited(0), "\(run.stderr)")
        #expect(some.allSatisfy { disk.existingPath(forKey: $0) != nil })
        #expect(urls.suffix(3).allSatisfy { disk.existingPath(forKey: $0) == nil })
    }

    @Test("run hands its limits to its workers, and old images go in the background")
    func run() async throws {
        let folder = TemporaryDirectory()
        let origin = try OriginServer()
        origin.route("/a.png", OriginResponse(body: GeneratedImage.png(seed: 1, width: 16, height: 16)))
        try fill(try cache(folder), 0..<20, hours: 48)
        folder.write(Array("\(origin.url("/a.png"))\n".utf8), to: "urls.txt")
        try await ran([
            "run", folder.path("urls.txt"), "--cache", folder.path("cache"), "-n", "1", "--allow-net", "127.0.0.0/8",
            "--cache-max-age", "1d",
        ])
        // The first check is when a worker starts.
        #expect(try cache(folder).audit.count().images == 1)
    }
}
