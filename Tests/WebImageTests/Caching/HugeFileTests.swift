import Glibc
import TestSupport
import Testing

@testable import WebImage

/// Files that say they are as long as a disk: of nothing but holes, they cost nothing to make and memory to read.
@Suite("Huge files in a disk cache", .timeLimit(.minutes(5)))
struct HugeFileTests {
    private let directory = TemporaryDirectory()
    private let bytes = Array("not really a picture".utf8)

    private func cache(_ most: Int? = nil) throws -> DiskCache {
        var configuration = DiskCache.Configuration()
        if let most { configuration.maxUnverifiedSize = most }
        return try DiskCache(directory: directory.path, configuration: configuration)
    }

    /// A file of holes under an image's name.
    private func lay(_ name: String, length: Int) throws -> String {
        try cache().images.store(ImageBody(bytes), for: CacheKey(name), record: record(bytes))
        let path = directory.path(CacheKey(name).path)
        #expect(unlink(path) == 0)
        directory.write([], to: CacheKey(name).path)
        #expect(truncate(path, off_t(length)) == 0)
        return path
    }

    /// Address space this process has taken at most, in bytes: what was asked for counts, written or not.
    private func peak() -> Int {
        let text = String(decoding: readFile("/proc/self/status") ?? [], as: UTF8.self)
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmPeak:") } ?? ""
        return (Int(line.filter(\.isNumber)) ?? 0) << 10
    }

    @Test("A file without a record that is longer than an image may be is damaged: a miss, moved aside unread")
    func unproved() async throws {
        let before = peak()
        for (name, length) in [("15 TB", 15 << 40), ("3 GB", 3 << 30)] {
            _ = try lay(name, length: length)
            let cache = try cache()
            var problems: [CacheFinding] = []
            _ = try await cache.audit.verify(report: { problems.append($0) })
            #expect(problems.count == 1 && problems[0].isDamaged, "\(name)")
            #expect(try cache.images.find(CacheKey(name)) == nil, "\(name)")
            #expect(
                try cache.find(forKey: name, atLeast: .none)?.bytes() == nil && cache.existingPath(forKey: name) == nil)
            #expect(try cache.images.store(ImageBody(bytes), for: CacheKey(name), record: record(bytes)) == .stored)
            #expect(try cache.find(forKey: name, atLeast: .none)?.bytes() == bytes)
            #expect(try cache.images.remove(CacheKey(name)))
        }
        #expect(directory.contents().filter { $0.hasPrefix("bad/") && $0 != "bad/" }.count == 2)
        #expect(peak() - before < 1 << 30)
    }

    @Test("The limit is the cache's own, and its bound counts as an image")
    func limit() throws {
        _ = try lay("a", length: 5_000)
        #expect(try cache(4_999).images.find(CacheKey("a")) == nil)
        _ = try lay("a", length: 5_000)
        #expect(try cache(5_000).images.find(CacheKey("a"))?.standing == .unverified)
    }

    @Test("A record that says so much is none")
    func recorded() throws {
        let path = try lay("a", length: 15 << 40)
        let file = open(path, O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        var record = record(bytes)
        record.length = 15 << 40
        let encoded = record.encoded(for: CacheKey("a"), file: 0)
        #expect(ImageRecords.set(ImageRecords.attribute, encoded, of: file) == 0)
        #expect(try cache().images.find(CacheKey("a"), atLeast: .none) == nil)
    }

    @Test("What a repair finds of it is moved aside, and a read-only cache behind another does not have it")
    func elsewhere() async throws {
        _ = try lay("a", length: 15 << 40)
        let own = TemporaryDirectory()
        var configuration = DiskCache.Configuration()
        configuration.readOnlyDirectories = [directory.path]
        #expect(try DiskCache(directory: own.path, configuration: configuration).find(forKey: "a") == nil)
        var repaired: [CacheAudit.Repair] = []
        _ = try await cache().audit.repair { repaired.append($1) }
        #expect(repaired == [.movedAside])
    }

    @Test("No larger image can be asked for than a record can be of")
    func configuration() {
        var configuration = ImageDownloader.Configuration()
        configuration.maxBodyBytes = 4 << 30
        #expect(throws: Never.self) { try configuration.validate() }
        configuration.maxBodyBytes += 1
        #expect(throws: WebImageError.self) { try configuration.validate() }
    }
}
