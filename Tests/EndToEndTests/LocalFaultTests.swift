import Glibc
import Origin
import Prefetch
import TestSupport
import Testing
import WebImage

/// Disks that are full or broken under a worker: it pauses, says so, blames no URL, and goes on by itself.
@Suite("Local faults", .timeLimit(.minutes(5)))
struct LocalFaultTests: CommandSuite {
    private let count = 24

    /// 24 images of 64 KiB and more, none of which the disk will take.
    private func origin() throws -> OriginServer {
        let origin = try OriginServer()
        for index in 0..<count {
            var body = GeneratedImage.png(seed: UInt64(index), width: 8, height: 8)
            // Behind the image's end, as pictures of cameras have it.
            body += [UInt8](repeating: UInt8(index), count: 65_536)
            origin.route("/\(index).png", OriginResponse(body: body))
        }
        return origin
    }

    private func worker(_ remote: RemoteBatch, cache: String, _ options: [String] = []) async throws -> ChildProcess {
        try await ChildProcess(
            builtProduct("prefetch-worker"),
            [
                "--redis", remote.redis.url, "--cache", cache, "--allow-net", "127.0.0.0/8",
                "--max-concurrent-downloads", "2",
            ] + options)
    }

    private func status(_ remote: RemoteBatch) async throws -> BatchStatus {
        try #require(try await remote.queue.batches.status(of: "b"))
    }

    /// What every such fault has to look like; `heal` takes the cause away.
    private func check(
        _ remote: RemoteBatch, _ worker: ChildProcess, _ origin: OriginServer, says text: String,
        heal: () async throws -> Void
    ) async throws {
        try await until { worker.stderr.contains("paused: ") }
        let paused = ContinuousClock.now
        #expect(worker.stderr.contains(text), "\(worker.stderr)")
        // In `workers` within a beat.
        try await until {
            let workers = try await remote.ended(["workers", "--json"])
            await workers.wait()
            return workers.stdout.contains(text)
        }
        let stuck = try await status(remote)
        #expect(stuck.state == .running && stuck.counts.skipped == 0 && stuck.counts.finished < count)
        try await heal()
        let began = ContinuousClock.now
        try await until { worker.stderr.contains("working again") }
        // The pauses between two readings are about as long as the fault has lasted.
        let most: Duration = .seconds(10) + (began - paused) * 2
        #expect(ContinuousClock.now - began < most)
        try await until { try await status(remote).state == .done }
        let counts = try await status(remote).counts
        #expect(counts.skipped == 0 && counts.finished == count, "\(counts)")
        #expect(try await remote.queue.failedURLs.count() == 0)
        worker.signal(SIGTERM)
        #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
    }

    private func verify(_ cache: String) async throws {
        let verify = try await ran(["cache", "verify", "--cache", cache])
        #expect(verify.stdout == "\(count) files, 0 damaged\n")
    }

    private func submit(_ remote: RemoteBatch, _ origin: OriginServer) async throws {
        try await remote.submit((0..<count).map { origin.url("/\($0).png") }, as: "b")
    }

    @Test(
        "A disk without room or without inodes",
        .enabled(if: LoopFileSystem.isPermitted, "this machine permits no mount"),
        arguments: ["size=600k", "size=64m,nr_inodes=60"])
    func full(options: String) async throws {
        let remote = try await RemoteBatch()
        let origin = try origin()
        let disk = TemporaryDirectory()
        #expect(LoopFileSystem.shell("mount -t tmpfs -o \(options) none '\(disk.path)'"))
        defer { umount2(disk.path, Int32(MNT_DETACH)) }
        try await submit(remote, origin)
        let worker = try await worker(remote, cache: disk.path("cache"))
        try await check(remote, worker, origin, says: "the disk is full, or has no inodes left") {
            #expect(LoopFileSystem.shell("mount -o remount,size=64m,nr_inodes=100000 '\(disk.path)'"))
        }
        try await verify(disk.path("cache"))
    }

    @Test("A quota that is used up", .enabled(if: LoopFileSystem.isPermitted, "this machine permits no mount"))
    func quota() async throws {
        guard let volume = LoopFileSystem("btrfs", megabytes: 320) else {
            // No mkfs.btrfs, or no such driver.
            return
        }
        let cache = "\(volume.path)/cache"
        let isLimited = LoopFileSystem.shell(
            "btrfs quota enable '\(volume.path)' >/dev/null && btrfs subvolume create '\(cache)' >/dev/null "
                + "&& btrfs qgroup limit 1M '\(cache)' >/dev/null")
        try #require(isLimited)
        let remote = try await RemoteBatch()
        let origin = try origin()
        try await submit(remote, origin)
        let worker = try await worker(remote, cache: cache)
        try await check(remote, worker, origin, says: "the disk quota is used up") {
            #expect(LoopFileSystem.shell("btrfs qgroup limit none '\(cache)'"))
        }
        try await verify(cache)
    }

    @Test("A file system that turns read-only names the directory, and nothing is lost")
    func readOnly() async throws {
        guard LoopFileSystem.isPermitted,
            let volume = LoopFileSystem("ext4", megabytes: 32, make: "-O ^has_journal", options: "errors=remount-ro")
        else { return }
        let remote = try await RemoteBatch()
        let origin = try origin()
        let cache = "\(volume.path)/cache"
        try await submit(remote, origin)
        let paused = try await worker(remote, cache: cache, ["--min-free", "9000000GB"])
        try await until { paused.stderr.contains("paused: ") }
        paused.signal(SIGTERM)
        #expect(await paused.wait() == .exited(0))
        // What the kernel does where it finds the disk damaged; there is no way back but another mount.
        let hasFailed = LoopFileSystem.shell(
            "d=$(losetup -n -O NAME -j '\(volume.image)'); echo 1 > /sys/fs/ext4/${d##*/}/trigger_fs_error")
        guard hasFailed, !LoopFileSystem.shell("touch '\(volume.path)/x' 2>/dev/null") else { return }
        let broken = try await worker(remote, cache: cache)
        #expect(await broken.wait() == .exited(73))
        #expect(broken.stderr.contains("read-only") && broken.stderr.contains(cache), "\(broken.stderr)")
        #expect(try await status(remote).counts.finished == 0)
        #expect(LoopFileSystem.shell("umount '\(volume.path)' && mount -o loop '\(volume.image)' '\(volume.path)'"))
        let healed = try await worker(remote, cache: cache, ["--burst"])
        #expect(await healed.wait() == .exited(0))
        #expect(try await status(remote).counts[.downloaded] == count)
    }

    @Test(
        "What stands in the way of an image or of its directory is that image's affair: the worker moves it aside and continues"
    )
    func obstacles() async throws {
        let remote = try await RemoteBatch()
        let origin = try origin()
        let cache = remote.folder.path("cache")
        let disk = try DiskCache(directory: cache)
        let outside = TemporaryDirectory()
        outside.write([1], to: "secret")
        let path = { (index: Int) in disk.images.path(of: CacheKey(origin.url("/\(index).png"))) }
        for index in 0..<4 {
            try disk.images.storeVerified(Self.picture, forKey: origin.url("/\(index).png"), level: .decode)
        }
        for index in 0..<4 { #expect(unlink(path(index)) == 0) }
        #expect(symlink(outside.path("secret"), path(0)) == 0 && mkfifo(path(1), 0o600) == 0)
        #expect(mkdir(path(2), 0o700) == 0 && mknod(path(3), S_IFSOCK | 0o600, 0) == 0)
        // A directory of two digits, and one above it.
        let used = (0..<4).map { path($0).dropFirst(cache.count + 4).prefix(3) }
        let free = (4..<count).map { path($0).dropFirst(cache.count + 4).prefix(3) }
        let leaf = try #require(free.first { one in !used.contains { $0.first == one.first } })
        let upper = try #require(
            free.first { one in !used.contains { $0.first == one.first } && one.first != leaf.first })
        #expect(mkdir("\(cache)/v1/\(leaf.prefix(1))", 0o700) == 0 && symlink(outside.path, "\(cache)/v1/\(leaf)") == 0)
        #expect(symlink(outside.path, "\(cache)/v1/\(upper.prefix(1))") == 0)
        try await submit(remote, origin)
        let worker = try await worker(remote, cache: cache, ["--burst"])
        #expect(await worker.wait() == .exited(0))
        #expect(!worker.stderr.contains("paused: "), "\(worker.stderr)")
        #expect(try await status(remote).counts[.downloaded] == count)
        #expect(outside.contents() == ["secret"] && outside.read("secret") == [1])
        try await verify(cache)
    }

    private static let picture = GeneratedImage.png(seed: 7, width: 8, height: 8)

    /// strace(1) answers in the kernel's place while it is attached.
    @Test(
        "Errors of a disk, a remount and a want of descriptors",
        arguments: [
            ("linkat", "EIO", "Input/output error"), ("linkat", "EROFS", "mounted read-only"),
            ("openat2", "EMFILE", "no file descriptors are left"),
            ("linkat", "EDQUOT", "quota is used up"), ("fsetxattr", "ENOSPC", "the disk is full"),
            // What a failed sync may have lost is fetched again.
            ("syncfs", "EIO", "Input/output error"),
        ])
    func injected(call: String, error: String, text: String) async throws {
        let remote = try await RemoteBatch()
        let origin = try origin()
        let cache = remote.folder.path("cache")
        // It has its cache and its registration before anything fails.
        let worker = try await worker(remote, cache: cache)
        try await until { worker.stderr.contains("is ready") }
        let tracer = try await ChildProcess(
            "/usr/bin/strace",
            ["-f", "-qq", "-p", String(worker.pid), "-e", "trace=\(call)", "-e", "inject=\(call):error=\(error)"])
        try await until { isTraced(worker.pid) || !tracer.isRunning }
        guard tracer.isRunning else {
            // Not every machine lets one process trace another.
            return
        }
        try await submit(remote, origin)
        try await check(remote, worker, origin, says: text) {
            tracer.signal(SIGINT)
            await tracer.wait()
        }
        try await verify(cache)
    }

    private func isTraced(_ pid: Int32) -> Bool {
        let text = String(decoding: readFile("/proc/\(pid)/status") ?? [], as: UTF8.self)
        return text.split(separator: "\n").contains { $0.hasPrefix("TracerPid:") && !$0.hasSuffix("\t0") }
    }
}
