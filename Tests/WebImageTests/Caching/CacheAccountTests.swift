import Glibc
import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("The cache's account", .timeLimit(.minutes(1)))
struct CacheAccountTests {
    private let directory = TemporaryDirectory()

    private func cache() throws -> DiskCache {
        try DiskCache(directory: directory.path, configuration: DiskCache.Configuration(durability: .none))
    }

    private func bytes(_ index: Int) -> [UInt8] {
        [UInt8](repeating: UInt8(index & 255), count: 1 + index * 777 % 30_000)
    }

    private func store(_ index: Int, in cache: DiskCache) throws {
        try cache.store(ImageBody(bytes(index)), for: CacheKey("\(index)"), record: record(bytes(index)))
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
        let (known, real) = (try cache.diskUsage(), used())
        #expect(known.count == real.count, sourceLocation: sourceLocation)
        #expect(abs(known.size - real.size) * 100 <= real.size, sourceLocation: sourceLocation)
    }

    @Test("Whatever comes and goes, all processes know what is there, within 1 % of du")
    func everything() throws {
        // An instance shares nothing with another but the directory, as two processes would.
        let (first, second) = (try cache(), try cache())
        #expect(first.knownSize == 0)
        for index in 0..<200 { try store(index, in: index % 2 == 0 ? first : second) }
        try expectTrue(first)
        #expect(first.knownSize == second.knownSize)
        // There already; then other bytes in their place.
        try store(7, in: second)
        try second.store(ImageBody(bytes(900)), for: CacheKey("7"), record: record(bytes(900)), replacing: true)
        try expectTrue(first)
        for index in 0..<50 { try second.remove(CacheKey("\(index)")) }
        try second.remove(CacheKey("3"))
        try expectTrue(first)
        damage(first.cachePath(forKey: "60"), length: 0)
        #expect(try first.lookup(CacheKey("60")) == nil)
        // The file had no blocks any more, and the account could not know.
        #expect(try second.diskUsage().count == used().count)
        _ = try second.sweep(SweepRules())
        try expectTrue(first)
        #expect(try first.clear() == used().count + 149)
        #expect(try second.diskUsage() == (0, 0))
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
                        if index % 5 == 0 { try cache.remove(CacheKey("\(index)")) }
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
        #expect(other.knownSize == nil)
        try expectTrue(other)
        #expect(other.knownSize != nil)
        // Whoever had the old one finds that out when it is asked, and counts on the new one from then on.
        try expectTrue(writer)
        try store(100, in: writer)
        try expectTrue(other)
    }

    @Test("What a killed process left open takes nothing from the images beside it, and a sweep sets it right")
    func drift() throws {
        let cache = try cache()
        for index in 1...20 { try store(index, in: cache) }
        let account = try #require(cache.account)
        // More blocks went than ever came.
        account.add(images: 0, blocks: -1_000, leaf: CacheKey("5").leafIndex)
        #expect(try cache.diskUsage().count == 20)
        #expect(cache.knownSize == 0)
        #expect(try cache.sweep(SweepRules())?.remaining.count == 20)
        try expectTrue(cache)
    }

    @Test("A cache that is only read is walked")
    func readOnly() throws {
        for index in 0..<5 { try store(index, in: try cache()) }
        let reader = try DiskCache(
            directory: directory.path, configuration: DiskCache.Configuration(isReadOnly: true))
        #expect(reader.knownSize == nil)
        try expectTrue(reader)
        let error = #expect(throws: WebImageError.self) { try reader.sweep(SweepRules(maxAge: 0)) }
        #expect(error?.underlyingCode == EROFS)
    }
}
