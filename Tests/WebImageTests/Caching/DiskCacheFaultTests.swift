import CLinux
import Glibc
import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("Disk cache, local faults", .timeLimit(.minutes(5)))
struct DiskCacheFaultTests {
    private let bytes = [UInt8](repeating: 7, count: 100_000)

    @Test(
        "A full disk is a local fault, leaves nothing behind and heals", .enabled(if: getuid() == 0),
        arguments: CacheMode.allCases)
    func fullDisk(mode: CacheMode) throws {
        let mountPoint = TemporaryDirectory()
        guard mount("tmpfs", mountPoint.path, "tmpfs", 0, "size=512k,nr_inodes=200") == 0 else {
            // A container without the right to mount.
            return
        }
        defer { umount2(mountPoint.path, Int32(MNT_DETACH)) }
        let cache = try DiskCache(directory: mountPoint.path("cache"), configuration: mode.configuration())
        var stored = 0
        let error = #expect(throws: WebImageError.self) {
            for _ in 0..<10 {
                try cache.images.store(ImageBody(bytes), for: CacheKey("\(stored)"), record: record(bytes))
                stored += 1
            }
        }
        #expect(stored > 0)
        #expect(error?.code == .localFault && error?.underlyingCode == ENOSPC)
        #expect(error?.message.contains(mountPoint.path("cache")) == true && error?.message.contains("full") == true)
        #expect(try cache.audit.count().images == stored)
        #expect(mountPoint.contents().filter { $0.contains(".t-") } == [])
        try cache.images.remove(CacheKey("0"))
        #expect(try cache.images.store(ImageBody(bytes), for: CacheKey("\(stored)"), record: record(bytes)) == .stored)
    }

    @Test(
        "A probe tells a disk that takes images from one that does not, and leaves nothing",
        arguments: CacheMode.allCases)
    func probe(mode: CacheMode) throws {
        let folder = TemporaryDirectory()
        let cache = try DiskCache(directory: folder.path("cache"), configuration: mode.configuration())
        try cache.images.store(ImageBody(bytes), for: CacheKey("a"), record: record(bytes))
        let before = try cache.account.usage()
        try CacheProbe(cache).run()
        try CacheProbe(cache).run(room: 1 << 20)
        #expect(try cache.account.usage() == before)
        let files = folder.contents().filter { $0.hasPrefix("cache/v1/") && !$0.hasSuffix("/") }
        #expect(files.count { !$0.hasSuffix(".m") } == 1 && files.count <= 2, "\(files)")
    }

    @Test("A probe of a disk with room for itself and not for an image fails", .enabled(if: getuid() == 0))
    func probeOfRoom() throws {
        let mountPoint = TemporaryDirectory()
        guard mount("tmpfs", mountPoint.path, "tmpfs", 0, "size=512k") == 0 else { return }
        defer { umount2(mountPoint.path, Int32(MNT_DETACH)) }
        let cache = try DiskCache(directory: mountPoint.path("cache"))
        try CacheProbe(cache).run(room: 64 << 10)
        let error = #expect(throws: WebImageError.self) { try CacheProbe(cache).run(room: 1 << 20) }
        #expect(error?.underlyingCode == ENOSPC && error?.isOfOneFile == false)
        #expect(try cache.account.usage() == (0, 0))
    }

    @Test("A read-only file system is named", .enabled(if: getuid() == 0))
    func readOnlyFileSystem() throws {
        let mountPoint = TemporaryDirectory()
        guard mount("tmpfs", mountPoint.path, "tmpfs", 0, "size=1m") == 0 else { return }
        defer { umount2(mountPoint.path, Int32(MNT_DETACH)) }
        // What is mapped for writing keeps a file system from being made read-only, so here nothing is: a folder in its place.
        #expect(
            mkdir(mountPoint.path(".prefetch"), 0o777) == 0 && mkdir(mountPoint.path(".prefetch/account"), 0o777) == 0)
        let cache = try DiskCache(directory: mountPoint.path)
        #expect(cache.account.totals?.size == nil)
        try cache.images.store(ImageBody([1]), for: CacheKey("a"), record: record([1], level: .header))
        #expect(try cache.account.usage() == (1, 4096))
        #expect(mount("tmpfs", mountPoint.path, "tmpfs", UInt(MS_REMOUNT | MS_RDONLY), nil) == 0)
        let error = #expect(throws: WebImageError.self) {
            try cache.images.store(ImageBody(bytes), for: CacheKey("b"), record: record(bytes))
        }
        #expect(error?.code == .localFault && error?.underlyingCode == EROFS)
        #expect(error?.message.contains("read-only") == true && error?.message.contains(mountPoint.path) == true)
        let entry = try #require(try cache.images.find(CacheKey("a")))
        #expect(try !cache.images.raise(entry, to: ImageInfo(format: .png, width: 1, height: 1, level: .decode)))
    }

    @Test("A directory without write permission is a local fault", .enabled(if: getuid() != 0))
    func noPermission() throws {
        let directory = TemporaryDirectory()
        let cache = try DiskCache(directory: directory.path)
        chmod(directory.path("v1"), 0o555)
        let error = #expect(throws: WebImageError.self) {
            try cache.images.store(ImageBody(bytes), for: CacheKey("a"), record: record(bytes))
        }
        chmod(directory.path("v1"), 0o755)
        #expect(error?.code == .localFault && error?.underlyingCode == EACCES)
    }

    @Test("Without root's rights a file gets its record and is read-only all the same", .enabled(if: getuid() == 0))
    func ordinaryUser() async throws {
        let directory = TemporaryDirectory()
        let nobody: uid_t = 65_534
        #expect(chmod(directory.path, 0o755) == 0 && chown(directory.path, nobody, nobody) == 0)
        let (bytes, path) = (bytes, directory.path)
        // The file system's user is a thread's own (setfsuid(2), which Glibc does not show to Swift), and takes its capabilities over
        // files away.
        let setfsuid = unsafeBitCast(
            try #require(dlsym(UnsafeMutableRawPointer(bitPattern: 0), "setfsuid")),
            to: (@convention(c) @Sendable (uid_t) -> Int32).self)
        let thread = ThreadPool(threads: 1, name: "nobody")
        let found = try await thread.run {
            _ = setfsuid(nobody)
            let cache = try DiskCache(directory: path)
            for key in ["a", "b"] {
                try cache.images.store(ImageBody(bytes), for: CacheKey(key), record: record(bytes, level: .decode))
            }
            return try cache.images.find(CacheKey("b"), atLeast: .decode)
        }
        let entry = try #require(found)
        #expect(entry.standing == .verified && entry.record?.length == bytes.count)
        var status = stat()
        #expect(stat(entry.path, &status) == 0 && status.st_uid == nobody && status.st_mode & 0o222 == 0)
    }

    @Test("A cache whose directory is renamed goes on under its new name", arguments: CacheMode.allCases)
    func removedDirectory(mode: CacheMode) throws {
        let directory = TemporaryDirectory()
        let cache = try DiskCache(directory: directory.path("c"), configuration: mode.configuration())
        #expect(rename(directory.path("c"), directory.path("d")) == 0)
        // The open directory is followed under its new name.
        try cache.images.store(ImageBody([1]), for: CacheKey("a"), record: record([1]))
        #expect(directory.read("d/\(CacheKey("a").path)") == [1])
    }
}
