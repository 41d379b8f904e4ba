import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

@Suite("Repairing a cache", .timeLimit(.minutes(5)))
struct CacheRepairTests {
    private let directory = TemporaryDirectory()

    private func picture(_ seed: UInt64) -> [UInt8] { GeneratedImage.png(seed: seed, width: 8, height: 8) }

    private func path(_ name: String) -> String { directory.path(CacheKey(name).path) }

    @Test(
        "Whatever stands in the place of an image is moved aside, what is whole gets its record",
        arguments: CacheMode.allCases)
    func everything(mode: CacheMode) async throws {
        let cache = try DiskCache(directory: directory.path, configuration: mode.configuration())
        let outside = TemporaryDirectory()
        outside.write(picture(9), to: "secret.png")
        let names = ["good", "short", "bare", "nonsense", "link", "folder", "pipe", "low"]
        for (index, name) in names.enumerated() {
            let bytes = picture(UInt64(index))
            try cache.images.store(
                ImageBody(bytes), for: CacheKey(name), record: record(bytes, level: name == "low" ? .none : .decode))
        }
        damage(path("short"), length: 20)
        for name in ["bare", "nonsense", "link", "folder", "pipe"] {
            #expect(unlink(path(name)) == 0)
            unlink(path(name) + ".m")
        }
        directory.write(picture(2), to: CacheKey("bare").path)
        directory.write([1, 2, 3], to: CacheKey("nonsense").path)
        #expect(symlink(outside.path("secret.png"), path("link")) == 0)
        #expect(mkdir(path("folder"), 0o777) == 0 && mkfifo(path("pipe"), 0o666) == 0)
        let before = outside.contents()

        var found: [CacheKey: (CacheFinding.Problem, CacheAudit.Repair)] = [:]
        let checked = try await cache.audit.repair(atLeast: .decode) { found[$0.key] = ($0.problem, $1) }
        #expect(checked == names.count)
        for name in ["short", "nonsense", "link", "folder", "pipe"] {
            #expect(found[CacheKey(name)]?.1 == .movedAside, "\(name)")
            #expect(try cache.images.find(CacheKey(name)) == nil, "\(name)")
        }
        #expect(found[CacheKey("folder")]?.0 == .notAFile && found[CacheKey("pipe")]?.0 == .notAFile)
        for name in ["bare", "low"] {
            #expect(found[CacheKey(name)]?.1 == .recorded, "\(name)")
            #expect(try cache.images.find(CacheKey(name), atLeast: .decode)?.standing == .verified, "\(name)")
        }
        #expect(found[CacheKey("good")] == nil)
        #expect(
            directory.contents().filter { $0.hasPrefix("bad/") && !$0.hasSuffix("/") && !$0.hasSuffix(".m") }.count == 4
        )
        #expect(outside.contents() == before && outside.read("secret.png") == picture(9))
        // What was moved aside is stored anew; then there is nothing to mend.
        for name in ["short", "nonsense", "link", "folder", "pipe"] {
            try cache.images.store(ImageBody(picture(1)), for: CacheKey(name), record: record(picture(1)))
        }
        _ = try await cache.audit.repair(atLeast: .decode) { finding, _ in Issue.record("\(finding)") }
        #expect(try cache.account.usage().count == names.count)
    }

    @Test("Two images that changed names are both misses", arguments: CacheMode.allCases)
    func swapped(mode: CacheMode) async throws {
        let cache = try DiskCache(directory: directory.path, configuration: mode.configuration())
        for (index, name) in ["a", "b"].enumerated() {
            let bytes = picture(UInt64(index))
            try cache.images.store(ImageBody(bytes), for: CacheKey(name), record: record(bytes))
        }
        for suffix in mode.hasSidecars ? ["", ".m"] : [""] {
            #expect(rename(path("a") + suffix, directory.path("aside")) == 0)
            #expect(rename(path("b") + suffix, path("a") + suffix) == 0)
            #expect(rename(directory.path("aside"), path("b") + suffix) == 0)
        }
        var problems: [CacheFinding.Problem] = []
        _ = try await cache.audit.verify(report: { problems.append($0.problem) })
        #expect(problems == [.key, .key])
        #expect(try cache.images.find(CacheKey("a")) == nil)
        #expect(cache.existingPath(forKey: "b") == nil)
        #expect(try cache.account.usage().count == 0)
    }

    @Test("A record that does not say of which file it is proves nothing")
    func nobodysRecord() throws {
        let cache = try DiskCache(directory: directory.path)
        let bytes = picture(1)
        try cache.images.store(ImageBody(bytes), for: CacheKey("a"), record: record(bytes))
        let entry = try #require(try cache.images.find(CacheKey("a")))
        let encoded = record(bytes).encoded
        #expect(ImageRecords.set(ImageRecords.attribute, encoded, of: entry.descriptor) == 0)
        #expect(try cache.images.find(CacheKey("a"))?.standing == .unverified)
    }

    @Test("Foreign files and links in the place of directories are named, and moved aside where that is asked")
    func strays() throws {
        let cache = try DiskCache(directory: directory.path)
        let bytes = picture(1)
        try cache.images.store(ImageBody(bytes), for: CacheKey("a"), record: record(bytes))
        let leaf = CacheKey("a").leaf
        let outside = TemporaryDirectory()
        outside.write([1], to: "file")
        directory.write([1], to: "v1/stray")
        directory.write([1], to: "\(leaf)/note.txt")
        directory.write([1], to: "\(leaf)/.t-1-1")
        let free = (0..<16).map { "v1/\(String($0, radix: 16))" }.first { access(directory.path($0), F_OK) != 0 }
        let link = try #require(free)
        #expect(symlink(outside.path, directory.path(link)) == 0)
        var named: [String] = []
        try cache.audit.strays { path, isMoved in
            named.append(path)
            #expect(!isMoved)
        }
        #expect(named.sorted() == ["v1/stray", "\(leaf)/note.txt", link].sorted())
        // The link stops nobody who looks through the cache.
        #expect(try cache.audit.count().images == 1)
        try cache.audit.strays(movesAside: true) { #expect($1, "\($0)") }
        try cache.audit.strays { path, _ in Issue.record("\(path)") }
        #expect(directory.contents().filter { $0.hasPrefix("bad/stray-") }.count == 3)
        #expect(outside.contents() == ["file"])
    }

    @Test("A cache that is only looked up is not repaired")
    func readOnly() async throws {
        _ = try DiskCache(directory: directory.path)
        let cache = try DiskCache(directory: directory.path, configuration: .init(isReadOnly: true))
        let error = await #expect(throws: WebImageError.self) { try await cache.audit.repair { _, _ in } }
        #expect(error?.underlyingCode == EROFS)
    }
}
