import Glibc
import TestSupport
import Testing

@testable import WebImage

@Suite("What is known to be on the disk", .timeLimit(.minutes(5)))
struct WriteOutTests {
    private let directory = TemporaryDirectory()
    private let bytes = Array("not really a picture".utf8)

    /// Each is one of another process, as far as the cache can tell.
    private func cache(_ readOnly: [String] = []) throws -> DiskCache {
        var configuration = DiskCache.Configuration()
        configuration.readOnlyDirectories = readOnly
        return try DiskCache(directory: directory.path, configuration: configuration)
    }

    private func store(_ key: String, in cache: DiskCache) throws {
        try cache.images.store(ImageBody(bytes), for: CacheKey(key), record: record(bytes))
        tick()
    }

    /// Files are dated by a clock that moves a hundred times a second or more.
    private func tick() { usleep(20_000) }

    @Test(
        "A hit of a file that nobody has written out is written out once; an old one costs nothing, in a new process neither"
    )
    func hits() throws {
        let publisher = try cache()
        try store("a", in: publisher)
        let reader = try cache()
        #expect(try !reader.syncPending())
        #expect(try reader.images.find(CacheKey("a")) != nil)
        #expect(try reader.syncPending())
        #expect(try reader.images.find(CacheKey("a")) != nil)
        #expect(try !reader.syncPending())
        // It was not there when the reader wrote out.
        try store("b", in: publisher)
        #expect(try reader.images.find(CacheKey("b")) != nil)
        #expect(try reader.syncPending())
        let late = try cache()
        #expect(try late.images.find(CacheKey("a")) != nil && late.images.find(CacheKey("b")) != nil)
        #expect(try !late.syncPending())
        #expect(try publisher.syncPending())
        #expect(try !publisher.syncPending())
    }

    @Test("A file that was copied into the cache by hand, dates and all, is written out before it counts")
    func copied() throws {
        let publisher = try cache()
        try store("a", in: publisher)
        #expect(try publisher.syncPending())
        let reader = try cache()
        let path = "\(directory.path)/\(CacheKey("a").path)"
        var times = [timespec(tv_sec: 1000, tv_nsec: 0), timespec(tv_sec: 1000, tv_nsec: 0)]
        #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
        tick()
        #expect(try reader.images.find(CacheKey("a")) != nil)
        #expect(try reader.syncPending())
    }

    @Test("A hit in a read-only cache is written out there", arguments: [true, false])
    func tiers(isOurs: Bool) throws {
        let other = TemporaryDirectory()
        if isOurs {
            let publisher = try DiskCache(directory: other.path)
            try publisher.images.store(ImageBody(bytes), for: CacheKey("a"), record: record(bytes))
            tick()
        } else {
            let name = try #require(SDWebImageFileName.name(forKey: "a", layout: .v5))
            other.write(bytes, to: name)
            tick()
        }
        let reader = try cache([other.path])
        #expect(try reader.find(forKey: "a") != nil)
        #expect(try reader.syncPending())
        #expect(try !reader.syncPending())
    }

    @Test("Without durability nothing is written out; with that of files only what others stored is")
    func durability() throws {
        for (durability, expected) in [(Durability.none, false), (.file, true)] {
            let own = try DiskCache(directory: directory.path, configuration: .init(durability: durability))
            try store("own \(durability)", in: own)
            #expect(try !own.syncPending())
            try store("other \(durability)", in: try cache())
            #expect(try own.images.find(CacheKey("other \(durability)")) != nil)
            #expect(try own.syncPending() == expected)
        }
    }

    @Test("A clock that was set since makes a stamp worth less by as much, and one of another boot worth nothing")
    func clocks() {
        let second: Int64 = 1_000_000_000
        let stamp = WriteOut.Stamp(began: 100 * second, offset: 50 * second)
        #expect(stamp.covers(99 * second, offset: 50 * second))
        #expect(!stamp.covers(100 * second, offset: 50 * second))
        for offset in [48, 52] {
            #expect(!stamp.covers(98 * second, offset: Int64(offset) * second))
            #expect(stamp.covers(97 * second, offset: Int64(offset) * second))
        }
        #expect(!stamp.covers(1, offset: 5_000 * second))
        #expect(!stamp.covers(.min, offset: .min))
    }

    @Test("A torn or foreign note counts for nothing")
    func notes() throws {
        let publisher = try cache()
        try store("a", in: publisher)
        #expect(try publisher.syncPending())
        for damage in [[UInt8]("x".utf8), [UInt8](repeating: 0x7f, count: 32), []] {
            directory.write(damage, to: ".prefetch/synced")
            let reader = try cache()
            #expect(try reader.images.find(CacheKey("a")) != nil)
            #expect(try reader.syncPending())
        }
    }
}
