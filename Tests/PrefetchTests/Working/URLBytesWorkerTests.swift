import Origin
import TestSupport
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

@Suite("Batches take URLs for their bytes", .timeLimit(.minutes(5)))
struct URLBytesWorkerTests {
    private func encoded(_ path: String) throws -> String { try RequestURL("http://h\(path)").target }

    /// Routes two images to the two forms of each path, one after the other, and returns the URLs and the images in their order.
    private func route(_ fixture: WorkerFixture) throws -> [(url: String, bytes: [UInt8])] {
        try EquivalentPaths.all.flatMap { [$0.one, $0.other] }.enumerated().map { index, path in
            let bytes = GeneratedImage.png(seed: UInt64(index), width: 20 + index, height: 20)
            fixture.origin.route(try encoded(path), OriginResponse(body: bytes))
            return (fixture.origin.url(path), bytes)
        }
    }

    @Test("Two equivalent URLs are two downloads and two files, near each other and far apart")
    func downloads() async throws {
        let fixture = try await WorkerFixture()
        let images = try route(fixture)
        let queue = try fixture.queue()
        // The first form of all, then the other one of all: other jobs, for the most part.
        let near = images.map(\.url)
        let id = try await fixture.submit(near, to: queue, jobSize: 4)
        #expect(try await fixture.worker().run()[.downloaded] == near.count)
        #expect(try await queue.batches.status(of: id)?.counts[.downloaded] == near.count)
        let cache = try ImageCache(directory: fixture.folder.path("cache"))
        for (url, bytes) in images {
            let path = try #require(cache.disk.existingPath(forKey: url))
            #expect(readFile(path) == bytes)
        }
        let far = images.indices.sorted { ($0 % 2, $0) < ($1 % 2, $1) }.map { images[$0].url }
        _ = try await fixture.submit(far, to: fixture.queue("far"), jobSize: 4)
        #expect(try await fixture.worker(queue: "far", cache: "far").run()[.downloaded] == far.count)
        #expect(fixture.origin.requestCount() == 2 * near.count)
    }

    @Test("The failure of one form is not the other's outcome, nor on the list for it")
    func failures() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.setFallback { _ in OriginResponse(status: 404) }
        var urls: [String] = []
        for (index, pair) in EquivalentPaths.all.enumerated() {
            let bytes = GeneratedImage.png(seed: UInt64(index), width: 20, height: 20)
            fixture.origin.route(try encoded(pair.other), OriginResponse(body: bytes))
            urls += [fixture.origin.url(pair.one), fixture.origin.url(pair.other)]
        }
        let queue = try fixture.queue()
        _ = try await fixture.submit(urls, to: queue)
        let counts = try await fixture.worker().run()
        #expect(counts[.httpError] == EquivalentPaths.all.count && counts[.downloaded] == EquivalentPaths.all.count)
        #expect(try await queue.failedURLs.count() == EquivalentPaths.all.count)
        _ = try await fixture.submit(urls, to: queue)
        let again = try await fixture.worker().run()
        #expect(again[.blacklisted] == EquivalentPaths.all.count && again[.hit] == EquivalentPaths.all.count)
    }

    @Test("A record of a URL that begins with a mark is read, and a note has no line break of its text")
    func records() {
        let detail = FailureDetail(line: 3, url: "\u{301}x", outcome: .invalidURL, detail: "\u{301}no URL")
        #expect(FailureDetail(encoded: detail.encoded()) == detail)
        var note = OpenURLNote(batch: "b", index: 1, state: .transferring, claimed: 2, elapsed: 3)
        note.host = "a \u{301}b\r\nc"
        note.detail = "\u{301}first\r\nsecond"
        let text = note.encoded
        #expect(!text.utf8.contains { $0 == 0x0A || $0 == 0x0D })
        #expect(OpenURLNote(text[...])?.detail.utf8.elementsEqual("\u{301}first  second".utf8) == true)
    }

    @Test("A dry run counts no duplicates among them, and looks for the image of each")
    func survey() async throws {
        let folder = TemporaryDirectory()
        let urls = EquivalentPaths.all.flatMap { ["http://h\($0.one)", "http://h\($0.other)"] }
        folder.write(Array((urls + urls).joined(separator: "\n").utf8), to: "urls.txt")
        let cache = try ImageCache(directory: folder.path("cache"))
        for url in urls where urls.firstIndex(where: { $0.utf8.elementsEqual(url.utf8) })!.isMultiple(of: 2) {
            try await cache.store(GeneratedImage.png(seed: 1, width: 9, height: 9), forKey: url)
        }
        let survey = try await ListSurvey(
            BatchEntries(URLList(path: folder.path("urls.txt"))), cache: cache.disk, rule: .url)
        #expect(survey.urls == 2 * urls.count && survey.duplicates == urls.count)
        #expect(survey.cached == urls.count / 2 && survey.missing == urls.count / 2)
    }
}
