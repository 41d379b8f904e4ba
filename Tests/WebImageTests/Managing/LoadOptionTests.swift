import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

/// SDWebImageOptions, one by one, and what a load can be told beside them.
@Suite("Options of a load", .timeLimit(.minutes(5)))
struct LoadOptionTests {
    private let fixture: ManagerFixture

    init() throws {
        fixture = try ManagerFixture()
    }

    @Test("Every option has the name it has in SDWebImage, and travels by it")
    func names() throws {
        for name in WebImageOptions.allNames { #expect(WebImageOptions(name: name)?.names == [name]) }
        #expect(Set(WebImageOptions.allNames).count == WebImageOptions.allNames.count)
        #expect(try WebImageOptions(names: ["refreshCached", "lowPriority"]) == [.refreshCached, .lowPriority])
    }

    @Test(
        "What is about a view is refused by name, with the reason",
        arguments: ["delayPlaceholder", "avoidAutoSetImage", "forceTransition"])
    func refused(name: String) {
        let error = #expect(throws: WebImageError.self) { try WebImageOptions(names: ["retryFailed", name]) }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message.hasPrefix("\(name) has no meaning off a screen: ") == true)
        #expect(WebImageOptions.refusal(ofName: "nope").hasPrefix("there is no option 'nope'; there are retryFailed, "))
    }

    @Test("cacheMemoryOnly verifies, keeps nothing on disk, and serves from memory")
    func memoryOnly() async throws {
        let (url, bytes) = fixture.image("/a.png")
        let manager = try fixture.manager()
        let image = try await manager.loadImage(with: url, options: .cacheMemoryOnly)
        #expect(image.outcome == .downloaded && image.path == nil && image.byteCount == bytes.count)
        #expect(await !manager.diskImageExists(for: url))
        #expect(try await manager.loadImage(with: url, options: .cacheMemoryOnly).cacheType == .memory)
        fixture.origin.route("/b.png", OriginResponse(body: [1, 2, 3]))
        #expect(await manager.failure(fixture.origin.url("/b.png"), .cacheMemoryOnly)?.code == .badImageData)
        #expect(fixture.origin.requestCount() == 2)
    }

    @Test("highPriority goes before what waits, lowPriority behind it")
    func priorities() async throws {
        let manager = try fixture.manager(downloads: { $0.maxConcurrentDownloads = 1 })
        await manager.downloader.setSuspended(true)
        var loads: [Task<WebImageError?, Never>] = []
        for (index, options) in [.lowPriority, [], .highPriority].enumerated() as EnumeratedSequence<[WebImageOptions]>
        {
            let (url, _) = fixture.image("/\(index)")
            loads.append(Task { await manager.failure(url, options) })
            try await until { await manager.downloader.currentDownloadCount == index + 1 }
        }
        await manager.downloader.setSuspended(false)
        for load in loads { #expect(await load.value == nil) }
        #expect(fixture.origin.requests.map(\.path) == ["/2", "/1", "/0"])
    }

    @Test("handleCookies sends back what the site has set, and only who asks for it does")
    func cookies() async throws {
        let bytes = GeneratedImage.png(seed: 1, width: 9, height: 9)
        fixture.origin.setFallback { _ in OriginResponse(headers: [("Set-Cookie", "a=1; Path=/")], body: bytes) }
        let manager = try fixture.manager()
        for (path, options) in [("/1", .handleCookies), ("/2", .handleCookies), ("/3", [])]
            as [(String, WebImageOptions)]
        {
            #expect(await manager.failure(fixture.origin.url(path), options) == nil)
        }
        #expect(fixture.origin.requests.map { $0.header("Cookie") } == [nil, "a=1", nil])
    }

    @Test("progressiveDownload ends what is no image at its first bytes, at any level, and tells of bytes")
    func progressive() async throws {
        let (url, bytes) = fixture.image("/a.png")
        fixture.origin.route("/b.png", OriginResponse(body: Array(repeating: 1, count: 100), fault: .stall(after: 50)))
        let manager = try fixture.manager(configure: { $0.validation = .none })
        let told = Told()
        _ = try await manager.loadImage(with: url, options: .progressiveDownload) { told.append($0, $1) }
        #expect(told.calls.last == [bytes.count, bytes.count])
        // Its end never comes: the first bytes have to be enough.
        #expect(await manager.failure(fixture.origin.url("/b.png"), .progressiveDownload)?.code == .badImageData)
    }

    @Test("An operation's cancel ends the load where it is, and tells its completion once")
    func operation() async throws {
        let (url, _) = fixture.image("/a.png", fault: .stallBeforeHeader)
        let manager = try fixture.manager()
        let ends = Told()
        let operation = manager.startLoad(
            with: url,
            completed: { result in
                if case .failure(let error) = result { ends.append(error.code.rawValue, 0) }
            })
        await fixture.origin.waitForRequests(1)
        // A second one waits for the first, before its transfer.
        let second = manager.startLoad(with: url)
        second.cancel()
        await #expect(throws: WebImageError.self) { try await second.image }
        #expect(await manager.downloader.currentDownloadCount == 1 && !operation.isCancelled)
        operation.cancel()
        await #expect(throws: WebImageError.self) { try await operation.image }
        #expect(operation.isCancelled && operation.url == url)
        try await until { ends.calls.count == 1 }
        #expect(ends.calls == [[2002, 0]])
        #expect(await manager.downloader.currentDownloadCount == 0 && !manager.isRunning)
        fixture.origin.release("/a.png")
        let third = manager.startLoad(with: url)
        #expect(try await third.image.outcome == .downloaded)
    }

    @Test("saveImageToCache stores under the key of the URL, in memory and on disk")
    func saving() async throws {
        let bytes = GeneratedImage.png(seed: 1, width: 9, height: 9)
        let manager = try fixture.manager(cache: fixture.cache(filter: { _ in "key" }))
        try await manager.saveImageToCache(bytes, for: "http://h/a")
        #expect(await manager.cache.containsImage(forKey: "key") == .memory)
        #expect(await manager.diskImageExists(for: "http://h/anything"))
        #expect(try await manager.loadImage(with: "http://h/b").outcome == .hit)
    }

    @Test("A digest that was expected is checked, of hits too; what has another is not stored")
    func expectedDigest() async throws {
        let (url, bytes) = fixture.image("/a.png")
        let manager = try fixture.manager()
        var request = LoadRequest(url: url, key: url)
        request.expectedDigest = SHA256.hash(Array("else".utf8))
        do {
            _ = try await manager.load(request)
            Issue.record("it has another digest")
        } catch {
            #expect(error.outcome == .mismatch && error.message.contains(SHA256.hash(bytes).hex))
        }
        #expect(await !manager.diskImageExists(for: url))
        request.expectedDigest = SHA256.hash(bytes)
        #expect(try await manager.load(request).outcome == .downloaded)
        #expect(try await manager.load(request).outcome == .hit)
        // What is there is not what is wanted now: fetched again, and it takes the place.
        let (_, new) = fixture.image("/a.png", size: 11)
        request.expectedDigest = SHA256.hash(new)
        let image = try await manager.load(request)
        #expect(try image.outcome == .downloaded && readFile(try #require(image.path)) == new)
    }

    @Test(
        "Mirrors are asked one after the other, without what speaks for the user; the URL's failure is the one that is told"
    )
    func mirrors() async throws {
        let mirror = try OriginServer()
        let (url, bytes) = fixture.image("/a.png")
        fixture.origin.route("/a.png", OriginResponse(status: 404))
        mirror.route("/bad", OriginResponse(body: [1]))
        mirror.route("/good", OriginResponse(headers: [("ETag", "\"m\"")], body: bytes))
        let manager = try fixture.manager()
        var request = LoadRequest(url: url, key: url)
        request.headers = [
            HTTPHeader("Authorization", "secret"), HTTPHeader("X-Own", "1"), HTTPHeader("Accept", "image/webp"),
        ]
        request.mirrors = [mirror.url("/bad"), mirror.url("/good")]
        let image = try await manager.load(request)
        #expect(image.outcome == .downloaded && image.url == url && image.tries == 3)
        #expect(image.details.contains("from the mirror \(mirror.url("/good"))"))
        #expect(readFile(manager.cache.disk.images.path(of: CacheKey(url))) == bytes)
        #expect(fixture.origin.requests.first?.header("Authorization") == "secret")
        // Nor does a header that may be a secret, for all anybody knows of its name.
        #expect(
            mirror.requests.allSatisfy {
                $0.header("Authorization") == nil && $0.header("X-Own") == nil && $0.header("Accept") == "image/webp"
            })
        // What the mirror said of its bytes is nothing the URL's server knows of.
        let entry = try #require(try manager.cache.disk.images.find(CacheKey(url)))
        #expect(manager.cache.disk.images.validators(of: entry) == nil)
        try await manager.cache.removeImage(forKey: url)
        request.mirrors = [mirror.url("/bad")]
        do {
            _ = try await manager.load(request)
            Issue.record("nobody has it")
        } catch {
            #expect(error.httpStatus == 404 && error.tries == 2)
        }
    }
}
