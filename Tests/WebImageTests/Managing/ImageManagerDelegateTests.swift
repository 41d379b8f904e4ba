import Origin
import Testing

@testable import WebImage

@Suite("ImageManager's delegate, and the order in which it asks", .timeLimit(.minutes(5)))
struct ImageManagerDelegateTests {
    private let fixture: ManagerFixture
    private var origin: OriginServer { fixture.origin }

    init() throws {
        fixture = try ManagerFixture()
    }

    @Test("failed URLs, cache, delegate, download: what comes first ends the load", arguments: FailedURLPolicy.allCases)
    func order(policy: FailedURLPolicy) async throws {
        let manager = try fixture.manager(policy: policy)
        let delegate = RecordingDelegate(downloads: false)
        manager.delegate = delegate
        let (cached, bytes) = fixture.image("/cached.png")
        let (missing, _) = fixture.image("/missing.png")
        try await manager.cache.store(bytes, forKey: cached)
        manager.cache.clearMemory()

        // In the cache: nobody is asked.
        for _ in 0..<2 { #expect(try await manager.loadImage(with: cached).outcome == .hit) }
        #expect(delegate.asked == [])
        // Neither failed nor cached: the delegate decides, and its no is nobody's failure.
        let refused = await manager.failure(missing)
        #expect(refused?.code == .notCached && refused?.outcome == .notCached)
        #expect(delegate.asked == ["download \(missing)"])
        #expect(manager.failedURLs.count == 0)

        // Failed: it ends there, except that smart asks the cache first and none asks no list.
        manager.failedURLs.insert(cached)
        manager.failedURLs.insert(missing)
        let expected: WebImageError.Code? = policy.isCheckedBeforeCache ? .blackListed : nil
        for _ in 0..<2 {
            #expect(await manager.failure(cached)?.code == expected)
            manager.cache.clearMemory()
        }
        let listed = await manager.failure(missing)?.code
        #expect(listed == (policy == .none ? .notCached : .blackListed))
        #expect(delegate.asked.count == (policy == .none ? 2 : 1))
        // retryFailed passes the list by, and the delegate is still asked.
        #expect(await manager.failure(missing, .retryFailed)?.code == .notCached)
        #expect(delegate.asked.count == (policy == .none ? 3 : 2))
        #expect(origin.requestCount() == 0)
    }

    @Test("fromCacheOnly never asks for a download")
    func fromCacheOnly() async throws {
        let manager = try fixture.manager()
        let delegate = RecordingDelegate()
        manager.delegate = delegate
        let (url, _) = fixture.image("/a.png")
        #expect(await manager.failure(url, .fromCacheOnly)?.code == .notCached)
        manager.failedURLs.insert(url)
        #expect(await manager.failure(url, .fromCacheOnly)?.code == .blackListed)
        #expect(delegate.asked == [])
        #expect(origin.requestCount() == 0)
    }

    @Test("What the delegate says of a failure replaces the policy's rule", arguments: FailedURLPolicy.allCases)
    func blocking(policy: FailedURLPolicy) async throws {
        origin.route("/503", OriginResponse(status: 503))
        origin.route("/html", OriginResponse(body: Array("<html>no picture</html>".utf8)))
        let urls = ["/404", "/503", "/html"].map { origin.url($0) }
        let byPolicy: [Bool] =
            switch policy {
            case .smart: [true, false, true]
            case .sd3: [true, true, true]
            case .sd4: [false, false, true]
            case .none: [false, false, false]
            }
        for blocks in [nil, true, false] {
            let manager = try fixture.manager(policy: policy)
            let delegate = RecordingDelegate(blocks: blocks)
            manager.delegate = delegate
            var codes: [Int] = []
            for url in urls { codes.append(try #require(await manager.failure(url)?.code.rawValue)) }
            #expect(codes == [2001, 2001, 1001])
            let listed = urls.map { manager.failedURLs.contains($0) }
            let expected = policy == .none ? byPolicy : blocks.map { [$0, $0, $0] } ?? byPolicy
            #expect(listed == expected, "\(policy) \(String(describing: blocks))")
            let asked = zip(urls, codes).flatMap { url, code in ["download \(url)", "block \(url) \(code)"] }
            #expect(delegate.asked == asked.filter { policy != .none || $0.hasPrefix("download") })
        }
    }

    @Test("Cancelling and a full disk are nobody's failure: the delegate is not asked to list them")
    func nobodysFault() async throws {
        var configuration = ImageCache.Configuration()
        _ = try fixture.cache()
        configuration.disk.isReadOnly = true
        let manager = try fixture.manager(policy: .sd3, cache: fixture.cache(configuration))
        let delegate = RecordingDelegate(blocks: true)
        manager.delegate = delegate
        let (stalled, _) = fixture.image("/stalled.png", fault: .stallBeforeHeader)
        let load = Task { await manager.failure(stalled) }
        await origin.waitForRequests(1)
        load.cancel()
        #expect(await load.value?.code == .cancelled)
        let (fine, _) = fixture.image("/fine.png")
        #expect(await manager.failure(fine)?.code == .localFault)
        #expect(delegate.asked == ["download \(stalled)", "download \(fine)"])
        #expect(manager.failedURLs.count == 0)
        // What could not be stored is no hit either.
        #expect(manager.cache.memory?.count == 0)
    }

    @Test(
        "Of many loads of a URL that fails one asks the network, the others have its error, and later ones find it on the list"
    )
    func oneRequest() async throws {
        let url = origin.url("/404")
        let manager = try fixture.manager(policy: .sd3)
        let codes = await withTaskGroup(of: WebImageError.Code?.self) { group in
            for _ in 0..<20 { group.addTask { await manager.failure(url)?.code } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        // Whether all began before it was listed is up to the machine.
        #expect(codes.contains(.invalidDownloadStatusCode))
        #expect(codes.allSatisfy { $0 == .invalidDownloadStatusCode || $0 == .blackListed }, "\(codes)")
        #expect(await manager.failure(url)?.code == .blackListed)
        #expect(origin.requestCount() == 1)
    }

    @Test("What the delegate refuses counts as skipped, and the list ends")
    func prefetching() async throws {
        let manager = try fixture.manager()
        let delegate = RecordingDelegate(downloads: false)
        manager.delegate = delegate
        let (cached, bytes) = fixture.image("/cached.png")
        try await manager.cache.store(bytes, forKey: cached)
        let prefetcher = ImagePrefetcher(manager: manager)
        let urls = [cached] + (1...3).map { origin.url("/\($0).png") }
        let end = try #require(await prefetcher.complete(urls))
        #expect(end == PrefetchEnd(finished: 4, skipped: 3))
        #expect(delegate.asked.count == 3)
        #expect(origin.requestCount() == 0)
    }

    @Test("The delegate is not kept")
    func weak() throws {
        let manager = try fixture.manager()
        manager.delegate = RecordingDelegate()
        #expect(manager.delegate == nil)
    }
}
