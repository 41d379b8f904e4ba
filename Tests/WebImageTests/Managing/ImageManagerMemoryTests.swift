import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

@Suite("ImageManager and memory", .timeLimit(.minutes(5)))
struct ImageManagerMemoryTests {
    private let fixture: ManagerFixture

    init() throws {
        fixture = try ManagerFixture()
    }

    @Test("An image in memory alone is a hit without a path, and has one as soon as there is a file")
    func path() async throws {
        let (url, bytes) = fixture.image("/a.png")
        let manager = try fixture.manager()
        try await manager.cache.store(bytes, forKey: url, toDisk: false)
        #expect(await manager.cachedImageExists(for: url))
        #expect(await !manager.diskImageExists(for: url))
        let alone = try await manager.loadImage(with: url)
        #expect(alone.outcome == .hit && alone.cacheType == .memory && alone.path == nil)
        #expect(alone.sha256 == SHA256.hash(bytes).bytes)
        try await manager.cache.store(bytes, forKey: url)
        let both = try await manager.loadImage(with: url)
        #expect(both.cacheType == .memory)
        #expect(readFile(try #require(both.path)) == bytes)
        try await manager.cache.clearDisk()
        #expect(try await manager.loadImage(with: url).path == nil)
        manager.cache.clearMemory()
        #expect(await !manager.cachedImageExists(for: url))
        #expect(fixture.origin.requestCount() == 0)
    }

    @Test("An image in memory that passed less is no hit, and makes way for the one that passed more")
    func level() async throws {
        let (url, bytes) = fixture.image("/a.png")
        var lenient = ImageCache.Configuration()
        lenient.validation = .header
        let manager = try fixture.manager(cache: fixture.cache(lenient))
        try await manager.cache.store(bytes, forKey: url, toDisk: false)
        #expect(try await manager.loadImage(with: url).outcome == .downloaded)
        #expect(manager.cache.imageFromMemoryCache(forKey: url)?.info.level == .decode)
        #expect(try await manager.loadImage(with: url).cacheType == .memory)
        #expect(fixture.origin.requestCount() == 1)
    }

    @Test("Memory holds no more than its limits, whatever is loaded")
    func limits() async throws {
        var configuration = ImageCache.Configuration()
        configuration.maxMemoryCountLimit = 2
        configuration.maxMemoryCost = 3000
        let manager = try fixture.manager(cache: fixture.cache(configuration))
        var urls: [String] = []
        for index in 0..<5 {
            let (url, bytes) = fixture.image("/\(index).png", size: 9 + index)
            #expect(bytes.count < 1000)
            urls.append(url)
            _ = try await manager.loadImage(with: url)
        }
        let (large, bytes) = fixture.image("/large.png", size: 64)
        #expect(bytes.count > 3000)
        for _ in 0..<2 { #expect(try await manager.loadImage(with: large).cacheType != .memory) }
        #expect(urls.map { manager.cache.memory?.contains($0) } == [false, false, false, true, true])
        let bounded = try #require(manager.cache.memory)
        #expect(bounded.count == 2 && bounded.totalCost <= 3000)
    }

    @Test("A worker's loads neither ask memory nor fill it")
    func workers() async throws {
        let (url, bytes) = fixture.image("/a.png")
        let manager = try fixture.manager()
        try await manager.cache.store(bytes, forKey: url, toDisk: false)
        let request = LoadRequest(url: url, key: url)
        #expect(try await manager.load(request).outcome == .downloaded)
        manager.cache.clearMemory()
        #expect(try await manager.load(request).cacheType == .disk)
        #expect(manager.cache.memory?.count == 0)
    }

    @Test("Without memory every hit is one of the disk")
    func diskOnly() async throws {
        let (url, _) = fixture.image("/a.png")
        let manager = try fixture.manager(cache: fixture.cache(.diskOnly))
        #expect(manager.cache.memory == nil)
        let types = [
            try await manager.loadImage(with: url).cacheType, try await manager.loadImage(with: url).cacheType,
        ]
        #expect(types == [.none, .disk])
    }

    @Test("A large body that was spooled to a file is in memory too")
    func spooled() async throws {
        let bytes = GeneratedImage.png(seed: 1, width: 800, height: 800)
        #expect(bytes.count > 1 << 20)
        fixture.origin.route("/a.png", OriginResponse(body: bytes))
        let manager = try fixture.manager()
        _ = try await manager.loadImage(with: fixture.origin.url("/a.png"))
        let image = try #require(manager.cache.imageFromMemoryCache(forKey: fixture.origin.url("/a.png")))
        #expect(image.bytes == bytes)
    }

    @Test("cancelAll ends the loads there are, and no later ones")
    func cancelAll() async throws {
        let urls = (0..<4).map { fixture.image("/\($0).png", fault: .stallBeforeHeader).url }
        let manager = try fixture.manager()
        manager.cancelAll()
        #expect(!manager.isRunning)
        // Two wait for one transfer.
        let loads = (urls + [urls[0]]).map { url in Task { await manager.failure(url) } }
        await fixture.origin.waitForRequests(4)
        try await until { manager.cache.transfers.waiting(for: CacheKey(urls[0])) == 1 }
        #expect(manager.isRunning)
        manager.cancelAll()
        for load in loads { #expect(await load.value?.code == .cancelled) }
        #expect(!manager.isRunning)
        #expect(manager.failedURLs.count == 0)
        try await until { fixture.origin.openConnectionCount == 0 }
        fixture.origin.release("/0.png")
        #expect(try await manager.loadImage(with: urls[0]).outcome == .downloaded)
    }

    @Test("Failed URLs are taken off one by one or all at once")
    func removingFailed() async throws {
        let manager = try fixture.manager()
        let urls = (0..<3).map { fixture.origin.url("/\($0)") }
        for url in urls { #expect(await manager.failure(url)?.httpStatus == 404) }
        manager.removeFailedURL(urls[1])
        var codes: [WebImageError.Code?] = []
        for url in urls { codes.append(await manager.failure(url)?.code) }
        #expect(codes == [.blackListed, .invalidDownloadStatusCode, .blackListed])
        manager.removeAllFailedURLs()
        #expect(manager.failedURLs.count == 0)
        #expect(await manager.failure(urls[0])?.httpStatus == 404)
    }
}
