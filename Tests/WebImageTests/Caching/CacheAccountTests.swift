import Glibc
import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("The cache's account", .timeLimit(.minutes(5)))
struct CacheAccountTests {
    private let directory = TemporaryDirectory()

    private func cache() throws -> DiskCache {
        try DiskCache(directory: directory.path, configuration: DiskCache.Configuration(durability: .none))
    }

    private func bytes(_ index: Int) -> [UInt8] {
        [UInt8](repeating: UInt8(index & 255), count: 1 + index * 777 % 30_000)
    }

    private func store(_ index: Int, in cache: DiskCache) throws {
        try cache.images.store(ImageBody(bytes(index)), for: CacheKey("\(index)"), record: record(bytes(index)))
    }

    /// What du counts, in files.
    private func used() -> (count: Int, size: Int) {
        var used = (count: 0, size: 0)
        for name in directory.contents() where name.hasPrefix("v1/") && !name.hasSuffix("/") {
            var status = stat()
            guard lstat(directory.path(name), &status) == 0 else { continue }
            used.count += 1
            used.size += Int(status.st_blocks) * 512
        }
        return used
    }

    private func expectTrue(_ cache: DiskCache, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let (known, real) = (try cache.account.usage(), used())
        #expect(known.count == real.count, sourceLocation: sourceLocation)
        #expect(abs(known.size - real.size) * 100 <= real.size, sourceLocation: sourceLocation)
    }

    @Test("Whatever comes and goes, all processes know what is there, within 1 % of du")
    func everything() throws {
        // An instance shares nothing with another but the directory, as two processes would.
        let (first, second) = (try cache(), try cache())
        #expect(first.account.totals?.size == 0)
        for index in 0..<200 { try store(index, in: index % 2 == 0 ? first : second) }
        try expectTrue(first)
        #expect(first.account.totals?.size == second.account.totals?.size)
        // There already; then other bytes in their place.
        try store(7, in: second)
        try second.images.store(ImageBody(bytes(900)), for: CacheKey("7"), record: record(bytes(900)), replacing: true)
        try expectTrue(first)
        for index in 0..<50 { try second.images.remove(CacheKey("\(index)")) }
        try second.images.remove(CacheKey("3"))
        try expectTrue(first)
        damage(first.images.path(of: CacheKey("60")), length: 0)
        #expect(try first.images.find(CacheKey("60")) == nil)
        // The file had no blocks any more, and the account could not know.
        #expect(try second.account.usage().count == used().count)
        _ = try second.sweep.run(SweepRules())
        try expectTrue(first)
        #expect(try first.images.removeAll() == used().count + 149)
        #expect(try second.account.usage() == (0, 0))
    }

    @Test("Many writers at once lose nothing")
    func concurrency() async throws {
        let caches = try (0..<3).map { _ in try cache() }
        let pool = ThreadPool(threads: 4, name: "account")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, cache) in caches.enumerated() {
                group.addTask(executorPreference: pool) {
                    for index in 0..<300 {
                        // Some in all three, some each their own; what went may come again.
                        try store(index % 3 == 0 ? index : index * 10 + number, in: cache)
                        if index % 5 == 0 { try cache.images.remove(CacheKey("\(index)")) }
                    }
                }
            }
            try await group.waitForAll()
        }
        try expectTrue(caches[0])
    }

    @Test(
        "A lost account, or one of an earlier boot, is counted anew",
        arguments: ["removed", "damaged", "boot", "short"])
    func lost(how: String) throws {
        let writer = try cache()
        for index in 0..<20 { try store(index, in: writer) }
        let path = directory.path(".prefetch/account")
        switch how {
        case "removed": unlink(path)
        case "boot", "damaged":
            var words = try #require(directory.read(".prefetch/account"))
            words[how == "boot" ? 9 : 2] ^= 0xFF
            unlink(path)
            directory.write(words, to: ".prefetch/account")
        default:
            unlink(path)
            directory.write([1, 2, 3], to: ".prefetch/account")
        }
        let other = try cache()
        #expect(other.account.totals?.size == nil)
        try expectTrue(other)
        #expect(other.account.totals?.size != nil)
        // Whoever had the old one finds that out when it is asked, and counts on the new one from then on.
        try expectTrue(writer)
        try store(100, in: writer)
        try expectTrue(other)
    }

    @Test("What a killed process left open takes nothing from the images beside it, and a sweep sets it right")
    func drift() throws {
        let cache = try cache()
        for index in 1...20 { try store(index, in: cache) }
        // More blocks went than ever came.
        cache.account.add(images: 0, blocks: -1_000, leaf: CacheKey("5").leafIndex)
        #expect(try cache.account.usage().count == 20)
        #expect(cache.account.totals?.size == 0)
        #expect(try cache.sweep.run(SweepRules())?.remaining.count == 20)
        try expectTrue(cache)
    }

    private func write(_ words: [(index: Int, value: UInt64)]) throws {
        let file = open(directory.path(".prefetch/account"), O_WRONLY | O_CLOEXEC)
        try #require(file >= 0)
        defer { close(file) }
        for (index, value) in words {
            var value = value.littleEndian
            #expect(pwrite(file, &value, 8, off_t(index * 8)) == 8)
        }
    }

    @Test(
        "A word that nobody can have counted is no number, and the next count sets it right",
        arguments: [
            0x7FFF_FFFF_FFFF_FFFF, 0x8000_0000_0000_0000, 0xFFFF_FFFF_FFFF_FFFF << 25, 0x5000_0000_0000_0000, 1 << 39,
        ])
    func implausible(word: UInt64) throws {
        let (first, second) = (try cache(), try cache())
        for index in 0..<10 { try store(index, in: first) }
        try write([(8 + CacheKey("3").leafIndex, word)])
        #expect(first.account.totals?.size == nil && second.account.totals == nil)
        try store(11, in: second)
        try expectTrue(first)
        #expect(second.account.totals?.count == 11)
        try write((0..<256).map { (8 + $0, word) })
        #expect(try second.sweep.run(SweepRules())?.remaining.count == 11)
        try expectTrue(second)
    }

    @Test("Whatever bit of it flips, nobody ends, and a sweep leaves what there is")
    func flippedBits() throws {
        let cache = try cache()
        for index in 0..<4 { try store(index, in: cache) }
        for word in [0, 1, 2, 3, 8, 8 + CacheKey("1").leafIndex] {
            for bit in 0..<64 {
                let bytes = try #require(directory.read(".prefetch/account"))
                let before = (0..<8).reduce(UInt64(0)) { $0 | UInt64(bytes[word * 8 + $1]) << (8 * UInt64($1)) }
                try write([(word, before ^ 1 << UInt64(bit))])
                _ = cache.account.totals
                try store(5, in: cache)
                _ = try cache.account.usage()
                #expect(
                    try cache.sweep.run(SweepRules(maxSize: 1 << 40))?.remaining.count == 5, "word \(word), bit \(bit)")
                try expectTrue(cache)
                try cache.images.remove(CacheKey("5"))
            }
        }
    }

    @Test(
        "An account that is cut short under those who have it mapped ends nobody, and is made anew",
        arguments: [0, 8, 4_000])
    func truncated(length: Int) throws {
        let caches = try (0..<3).map { _ in try cache() }
        for index in 0..<30 { try store(index, in: caches[index % 3]) }
        for round in 0..<3 {
            #expect(truncate(directory.path(".prefetch/account"), off_t(length)) == 0)
            for (index, cache) in caches.enumerated() {
                try store(100 + 10 * round + index, in: cache)
                _ = cache.account.totals
                try cache.images.remove(CacheKey("\(10 * round + index)"))
            }
            for cache in caches { try expectTrue(cache) }
        }
    }

    @Test("Files whose lengths together are no number, and dates that no clock has, are counted and swept")
    func lengths() throws {
        let cache = try cache()
        for index in 0..<4 {
            try store(index, in: cache)
            let path = cache.images.path(of: CacheKey("\(index)"))
            #expect(chmod(path, 0o600) == 0)
            // As long as the file system can have it.
            _ = [Int64.max, 8 << 40, 15 << 40, 1 << 40].first { truncate(path, off_t($0)) == 0 }
            let times = [timespec(tv_sec: index == 0 ? .max : index == 1 ? .min : 20_000_000_000, tv_nsec: 0)]
            #expect(utimensat(AT_FDCWD, path, times + times, 0) == 0)
        }
        #expect(try cache.account.usage().count == 4)
        _ = try cache.audit.count().bytes
        var rules = SweepRules(maxAge: 1)
        rules.isDryRun = true
        let report = try #require(try cache.sweep.run(rules))
        #expect(report.expired.count + report.remaining.count >= 4)
        #expect(try cache.sweep.run(SweepRules(maxSize: 1 << 30)) != nil)
        for index in 0..<4 { #expect(try cache.images.find(CacheKey("\(index)")) == nil) }
    }

    @Test("A cache that is only read is walked")
    func readOnly() throws {
        for index in 0..<5 { try store(index, in: try cache()) }
        let reader = try DiskCache(
            directory: directory.path, configuration: DiskCache.Configuration(isReadOnly: true))
        #expect(reader.account.totals?.size == nil)
        try expectTrue(reader)
        let error = #expect(throws: WebImageError.self) { try reader.sweep.run(SweepRules(maxAge: 0)) }
        #expect(error?.underlyingCode == EROFS)
    }
}
