import Glibc
import TestSupport
import Testing

@testable import WebImage

@Suite("What a cache directory is like", .timeLimit(.minutes(5)))
struct CacheConditionTests {
    private let directory = TemporaryDirectory()

    @Test("A cache has one id for all who open it, another than any other cache")
    func identity() throws {
        let first = try DiskCache(directory: directory.path("a"))
        let id = try #require(first.folder.id)
        #expect(id.utf8.count == 32)
        #expect(try DiskCache(directory: directory.path("a")).folder.id == id)
        #expect(try DiskCache(directory: directory.path("a"), configuration: .init(isReadOnly: true)).folder.id == id)
        #expect(try DiskCache(directory: directory.path("b")).folder.id != id)
        #expect(rename(directory.path("a"), directory.path("c")) == 0)
        #expect(first.folder.id == id)
        // Somebody's nonsense is none.
        #expect(unlink(directory.path("b/.prefetch/id")) == 0)
        directory.write(Array("zz\n".utf8), to: "b/.prefetch/id")
        #expect(try DiskCache(directory: directory.path("b")).folder.id == nil)
    }

    @Test("Processes that open a new cache at the same moment agree on its id")
    func race() async throws {
        let path = directory.path("cache")
        let ids = try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<16 { group.addTask { try DiskCache(directory: path).folder.id } }
            return try await group.reduce(into: Set<String?>()) { $0.insert($1) }
        }
        #expect(ids.count == 1 && !ids.contains(nil))
        #expect(directory.contents().filter { $0.contains(".t-") } == [])
    }

    @Test("What the file system can do is tried, and nothing stays behind")
    func abilities() throws {
        let cache = try DiskCache(directory: directory.path("cache"))
        let before = directory.contents()
        let condition = try cache.condition()
        #expect(condition.hasHardLinks && condition.id == cache.folder.id && condition.warnings == [])
        #expect(condition.freeSize ?? 0 > 0)
        #expect(directory.contents() == before)
        let poor = try DiskCache(directory: directory.path("cache"), configuration: CacheMode.poorest.configuration())
        #expect(try !poor.condition().hasUnnamedFiles && !poor.condition().hasExtendedAttributes)
    }

    @Test("A directory that everybody may write to has a warning with the remedy")
    func worldWritable() throws {
        #expect(mkdir(directory.path("open"), 0o777) == 0 && chmod(directory.path("open"), 0o777) == 0)
        let cache = try DiskCache(directory: directory.path("open"))
        #expect(cache.warnings.count == 1 && cache.warnings[0].contains("chmod o-w"))
        #expect(try cache.condition().warnings == cache.warnings)
        #expect(chmod(directory.path("open"), 0o775) == 0)
        #expect(try DiskCache(directory: directory.path("open")).warnings == [])
    }
}
