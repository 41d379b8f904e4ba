import Glibc
import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("Several caches as one", .timeLimit(.minutes(5)))
struct ImageCachesManagerTests {
    private let folder = TemporaryDirectory()
    private let jpeg = GeneratedImage.jpeg(seed: 1, width: 50, height: 40)
    private let png = GeneratedImage.png(seed: 2, width: 30, height: 20)

    /// A cache over a store, or over its own directory.
    private func cache(_ name: String, over store: (any DiskImageStore)? = nil) throws -> ImageCache {
        var configuration = ImageCache.Configuration()
        configuration.diskStore = store
        return try ImageCache(directory: folder.path(name), configuration: configuration)
    }

    private func manager(
        _ policy: ImageCachesManager.OperationPolicy, _ caches: [ImageCache]
    ) -> ImageCachesManager {
        ImageCachesManager(caches, configuration: .init(all: policy))
    }

    @Test("The fastest answer wins although a cache of higher priority still looks; only one by one that is waited for")
    func fastest() async throws {
        let slow = GateStore()
        let (low, high) = (try cache("low"), try cache("high", over: slow))
        try await low.storeImageDataToDisk(png, forKey: "a")
        try await high.storeImageDataToDisk(jpeg, forKey: "a")
        let concurrent = manager(.concurrent, [low, high])
        // Nobody has let the slow one through.
        #expect(try await concurrent.queryImage(forKey: "a")?.image.bytes == png)
        low.clearMemory()
        #expect(await concurrent.containsImage(forKey: "a") == .disk)
        // One by one the slow one is waited for.
        let serial = manager(.serial, [low, high])
        let task = Task { try await serial.queryImage(forKey: "a")?.image.bytes }
        while slow.asked.withLock({ $0.isEmpty }) { await Task.yield() }
        slow.gate.open()
        #expect(try await task.value == jpeg)
    }

    @Test("A hit that comes last is a hit; where none has the image, all have said so")
    func last() async throws {
        let slow = GateStore()
        let (low, high) = (try cache("low", over: slow), try cache("high"))
        try await low.storeImageDataToDisk(png, forKey: "a")
        let manager = manager(.concurrent, [low, high])
        let task = Task { try await manager.queryImage(forKey: "a")?.image.bytes }
        while slow.asked.withLock({ $0.isEmpty }) { await Task.yield() }
        slow.gate.open()
        #expect(try await task.value == png)
        #expect(try await manager.queryImage(forKey: "b") == nil)
        #expect(slow.asked.withLock { $0.contains("b") })
    }

    @Test("A cancelled query ends: at once where all are asked, before the next cache where one is after the other")
    func cancellation() async throws {
        for policy in [ImageCachesManager.OperationPolicy.concurrent, .serial] {
            let (slow, counting) = (GateStore(), DictionaryStore())
            let low = try cache("low-\(policy)", over: counting)
            let manager = manager(policy, [low, try cache("high-\(policy)", over: slow)])
            let task = Task { () async -> WebImageError.Code? in
                do throws(WebImageError) {
                    _ = try await manager.queryImage(forKey: "a")
                    return nil
                } catch {
                    return error.code
                }
            }
            while slow.asked.withLock({ $0.isEmpty }) { await Task.yield() }
            task.cancel()
            // One after the other the look-up that has begun ends by itself; its successor never begins.
            if policy == .serial { slow.gate.open() }
            #expect(await task.value == .cancelled)
            if policy == .serial { #expect(counting.calls.withLock { $0["image"] } == nil) }
        }
    }

    @Test("A cache at fault does not hide another's image, and is told of where no other has it")
    func faults() async throws {
        let (low, high) = (try cache("low"), try cache("high", over: BrokenStore()))
        try await low.store(png, forKey: "a")
        low.clearMemory()
        for policy in [ImageCachesManager.OperationPolicy.serial, .concurrent] {
            let manager = manager(policy, [low, high])
            #expect(try await manager.queryImage(forKey: "a")?.image.bytes == png)
            low.clearMemory()
            let error = await #expect(throws: WebImageError.self) { try await manager.queryImage(forKey: "b") }
            #expect(error?.code == .localFault)
            // What fails in one is done in the others.
            await #expect(throws: WebImageError.self) { try await manager.store(jpeg, forKey: "b") }
            #expect(try await low.imageFromDiskCache(forKey: "b")?.bytes == jpeg)
            await #expect(throws: WebImageError.self) { try await manager.removeImage(forKey: "b") }
            #expect(await low.containsImage(forKey: "b") == .none)
            high.clearMemory()
        }
    }

    @Test("Caches come and go; the last one that came is asked first, and without any there is nothing")
    func list() async throws {
        let manager = ImageCachesManager()
        try await manager.store(png, forKey: "a")
        #expect(try await manager.queryImage(forKey: "a") == nil)
        let (one, two) = (try cache("one"), try cache("two"))
        manager.addCache(one)
        try await manager.store(png, forKey: "a")
        manager.addCache(two)
        try await manager.store(jpeg, forKey: "a")
        #expect(manager.caches.map(\.disk.directory) == [one, two].map(\.disk.directory))
        #expect(one.imageFromMemoryCache(forKey: "a")?.bytes == png)
        #expect(try await manager.queryImage(forKey: "a")?.image.bytes == jpeg)
        manager.removeCache(two)
        #expect(try await manager.queryImage(forKey: "a")?.image.bytes == png)
        #expect(two.imageFromMemoryCache(forKey: "a")?.bytes == jpeg)
    }

    @Test(
        "A manager of images works over several caches as over one",
        arguments: ImageCachesManager.OperationPolicy.allCases)
    func imageManager(policy: ImageCachesManager.OperationPolicy) async throws {
        let fixture = try ManagerFixture()
        let (low, high) = (try cache("low"), try cache("high"))
        var all = ImageCachesManager.Configuration()
        all.queryOperationPolicy = policy == .lowestOnly ? .serial : policy
        all.storeOperationPolicy = policy
        if policy == .highestOnly || policy == .lowestOnly { all.queryOperationPolicy = .serial }
        let caches = ImageCachesManager([low, high], configuration: all)
        var configuration = ImageCache.Configuration()
        configuration.diskStore = caches
        let cache = try fixture.cache(configuration)
        let manager = try fixture.manager(cache: cache)
        let (url, bytes) = fixture.image("/a.png")
        let loaded = try await manager.loadImage(with: url)
        #expect(loaded.outcome == .downloaded)
        #expect(readFile(try #require(loaded.path)) == bytes)
        let stored = try [low, high].filter { try $0.disk.find(forKey: url, atLeast: .none)?.bytes() == bytes }.map(
            \.disk.directory)
        let named = caches.caches(for: policy).map(\.disk.directory)
        #expect(Set(stored) == Set(named))
        cache.clearMemory()
        let hit = try await manager.loadImage(with: url)
        #expect(hit.outcome == .hit && hit.cacheType == .disk && hit.path?.hasPrefix(folder.path) == true)
        #expect(hit.sha256 == SHA256.hash(bytes).bytes)
        #expect(try await cache.totalDiskCount() == stored.count)
        // What one has in another way, damaged here, is found in the other.
        if stored.count == 2 {
            chmod(high.disk.images.path(of: CacheKey(url)), 0o600)
            let file = try #require(fopen(high.disk.images.path(of: CacheKey(url)), "r+"))
            fputc(0, file)
            fclose(file)
            cache.clearMemory()
            #expect(try await manager.loadImage(with: url).outcome == .hit)
            if policy == .serial { #expect(high.disk.existingPath(forKey: url) == nil) }
        }
        #expect(fixture.origin.requestCount() == 1)
        try await cache.removeImage(forKey: url)
        #expect(await low.containsImage(forKey: url) == .none)
        #expect(await high.containsImage(forKey: url) == .none)
        #expect(try await manager.loadImage(with: url).outcome == .downloaded)
        #expect(try await cache.clearDisk() == stored.count)
    }

    @Test("A new record goes to the cache that has those bytes, and old images go from every cache")
    func describing() async throws {
        let (low, high) = (try cache("low"), try cache("high"))
        let caches = ImageCachesManager([low, high])
        try await low.store(png, forKey: "a")
        try await high.store(jpeg, forKey: "a")
        var known = try #require(try low.store.image(forKey: "a")?.record)
        known.storedAt += 1000
        let validators = HTTPValidators(etag: "\"a\"", lastModified: nil, key: "a")
        try caches.describe(record: known, validators: validators, forKey: "a")
        #expect(try low.store.image(forKey: "a")?.validators?.etag == "\"a\"")
        #expect(try high.store.image(forKey: "a")?.validators?.etag == nil)
        #expect(try high.store.image(forKey: "a")?.record?.digest == SHA256.hash(jpeg))
        #expect(try caches.diskUsage().count == 2)
        age(high.disk.images.path(of: CacheKey("a")), modified: 100)
        let report = try #require(try caches.removeExpired(olderThan: 50, beyond: nil))
        #expect(report.expired.count == 1 && report.remaining.count == 1)
        #expect(low.disk.existingPath(forKey: "a") != nil && high.disk.existingPath(forKey: "a") == nil)
    }
}
