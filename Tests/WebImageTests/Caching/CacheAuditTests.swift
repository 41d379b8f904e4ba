import Glibc
import TestSupport
import Testing

@testable import WebImage

@Suite("Checking a cache", .timeLimit(.minutes(5)))
struct CacheAuditTests {
    @Test("Each kind of damage is found and named, and nothing is touched", arguments: CacheMode.allCases)
    func findings(mode: CacheMode) async throws {
        let directory = TemporaryDirectory()
        let cache = try DiskCache(directory: directory.path, configuration: mode.configuration())
        let bytes = Array("0123456789".utf8)
        let names = ["good", "short", "flipped", "bare", "low", "picture", "empty"]
        for name in names {
            try cache.images.store(
                ImageBody(bytes), for: CacheKey(name), record: record(bytes, level: name == "low" ? .header : .decode))
        }
        func path(_ name: String) -> String { directory.path(CacheKey(name).path) }
        damage(path("short"), length: 4)
        chmod(path("flipped"), 0o600)
        let file = try #require(fopen(path("flipped"), "r+"))
        fputc(0, file)
        fclose(file)
        for name in ["bare", "empty"] {
            unlink(path(name))
            unlink(path(name) + ".m")
            directory.write(name == "bare" ? bytes : [], to: CacheKey(name).path)
        }
        directory.write([1], to: "v1/stray")
        directory.write([1], to: "\(CacheKey("good").leaf)/.t-1-1")
        let before = directory.contents()
        var found: [CacheKey: CacheFinding] = [:]
        let picture = CacheKey("picture")
        let checked = try await cache.audit.verify(
            atLeast: .decode,
            check: { entry throws(WebImageError) in entry.key == picture ? "premature end" : nil },
            report: { found[$0.key] = $0 })
        #expect(checked == names.count)
        let problems = Dictionary(uniqueKeysWithValues: names.map { ($0, found[CacheKey($0)]?.problem) })
        #expect(
            problems == [
                "good": nil, "short": .size(expected: 10, found: 4), "flipped": .digest, "bare": .noRecord,
                "low": .level(.header), "picture": .image("premature end"), "empty": .size(expected: 1, found: 0),
            ])
        #expect(found.values.filter(\.isDamaged).count == 4)
        #expect(found[CacheKey("short")]?.path == path("short"))
        #expect(directory.contents() == before)
    }

    @Test("A cancelled check stops")
    func cancelled() async throws {
        let directory = TemporaryDirectory()
        let cache = try DiskCache(directory: directory.path)
        try cache.images.store(ImageBody([1]), for: CacheKey("a"), record: record([1]))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await cache.audit.verify(report: { _ in })
        }
        let error = await #expect(throws: WebImageError.self) { try await task.value }
        #expect(error?.code == .cancelled)
    }
}
