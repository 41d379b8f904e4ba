import Glibc
import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

/// A cache whose images are kept by somebody else's code.
@Suite("Images kept elsewhere", .timeLimit(.minutes(5)))
struct DiskImageStoreTests {
    private let folder = TemporaryDirectory()
    private let picture = GeneratedImage.jpeg(seed: 1, width: 40, height: 30)
    private let key = "http://example.org/a.jpg"
    private let store = DictionaryStore()

    private func cache(_ change: (inout ImageCache.Configuration) -> Void = { _ in }) throws -> ImageCache {
        var configuration = ImageCache.Configuration.diskOnly
        configuration.diskStore = store
        change(&configuration)
        return try ImageCache(directory: folder.path("cache"), configuration: configuration)
    }

    /// No image is in the directory.
    private var isDirectoryEmpty: Bool {
        !folder.contents().contains { $0.hasPrefix("cache/v1/") && $0 != "cache/v1/" }
    }

    @Test("What is stored is in the store, whole and with its record, and not in the directory")
    func storing() async throws {
        let cache = try cache()
        #expect(try await cache.queryImage(forKey: key) == nil)
        try await cache.store(picture, forKey: key)
        let kept = try #require(store.kept.withLock { $0[key] })
        let bytes = try kept.image.body.withUnsafeBytes { bytes throws(WebImageError) in Array(bytes) }
        #expect(bytes == picture)
        #expect(kept.image.record?.level == .decode && kept.image.record?.length == picture.count)
        #expect(kept.image.record?.digest == SHA256.hash(picture))
        let found = try #require(try await cache.queryImage(forKey: key))
        #expect(found.cacheType == .disk && found.image.bytes == picture)
        #expect(found.image.info == ImageInfo(format: .jpeg, width: 40, height: 30, level: .decode, colorSpace: .rgb))
        #expect(await cache.containsImage(forKey: key) == .disk)
        #expect(cache.cachePath(forKey: key) == nil)
        #expect(try await cache.totalDiskCount() == 1)
        #expect(try await cache.totalDiskSize() == picture.count)
        try await cache.removeImage(forKey: key)
        #expect(await cache.containsImage(forKey: key) == .none)
        try await cache.store(picture, forKey: key)
        #expect(try await cache.clearDisk() == 1)
        #expect(try await cache.totalDiskCount() == 0)
        #expect(isDirectoryEmpty)
    }

    @Test("What is no image never comes to the store, and what the store cannot keep is told")
    func refusing() async throws {
        let cache = try cache { $0.shouldCacheImagesInMemory = true }
        await #expect(throws: WebImageError.self) { try await cache.store([1, 2, 3], forKey: key) }
        #expect(store.calls.withLock { $0["store"] } == nil)
        store.fault.withLock { $0 = WebImageError(.localFault, "the database is away", underlyingCode: EIO) }
        let error = await #expect(throws: WebImageError.self) { try await cache.store(picture, forKey: key) }
        #expect(error?.code == .localFault && error?.message == "the database is away")
        #expect(cache.imageFromMemoryCache(forKey: key)?.bytes == picture)
    }

    @Test(
        "What comes back counts as far as its bytes prove it", arguments: ["other bytes", "cut", "no record", "lower"])
    func proving(what: String) async throws {
        let cache = try cache()
        try await cache.store(picture, forKey: key)
        let other = GeneratedImage.png(seed: 2, width: 5, height: 5)
        store.kept.withLock { kept in
            switch what {
            case "other bytes": kept[key]?.image.body = ImageBody(other)
            case "cut": kept[key]?.image.body = ImageBody(Array(picture.dropLast()))
            case "no record": kept[key]?.image.record = nil
            default: kept[key]?.image.record?.level = .header
            }
        }
        let found = try await cache.queryImage(forKey: key)
        if what == "other bytes" || what == "cut" {
            // Damaged: gone, also from the store.
            #expect(found == nil && !store.contains(key))
        } else {
            #expect(found?.image.bytes == picture && found?.image.info.level == .decode)
            #expect(store.kept.withLock { $0[key]?.image.record?.level } == .decode)
            let described = store.calls.withLock { $0["describe"] }
            #expect(try await cache.queryImage(forKey: key) != nil)
            // Once is enough where there is a digest to compare with.
            if what == "lower" { #expect(described == 1 && store.calls.withLock { $0["describe"] } == 1) }
        }
        // Without a record only what can be decoded passes.
        store.kept.withLock { kept in
            kept[key] = DictionaryStore.Kept(image: StoredImage(body: ImageBody([1, 2, 3]), record: nil), date: 0)
        }
        #expect(try await cache.queryImage(forKey: key) == nil && !store.contains(key))
    }

    @Test("deleteOldFiles hands the two limits to the store")
    func expiring() async throws {
        let cache = try cache { $0.maxDiskAge = 100 }
        for (index, age) in [0, 50, 150, 200].enumerated() {
            try await cache.store(picture, forKey: "\(index)")
            store.kept.withLock { $0["\(index)"]?.date -= age }
        }
        let report = try await cache.deleteOldFiles()
        #expect(report?.expired.count == 2 && report?.remaining.count == 2)
        #expect(store.contains("0") && store.contains("1"))
        let never = try self.cache { $0.maxDiskAge = -1 }
        #expect(try await never.deleteOldFiles()?.remaining.count == 2)
        let small = try self.cache {
            $0.maxDiskAge = -1
            $0.maxDiskSize = 2 * picture.count - 1
        }
        #expect(try await small.deleteOldFiles()?.evicted.count == 2)
        #expect(try await small.totalDiskCount() == 0)
    }

    @Test(
        "A manager's loads end in the store: download, hit, refresh, expected digest, and what is damaged is fetched again"
    )
    func loading() async throws {
        let fixture = try ManagerFixture()
        var configuration = ImageCache.Configuration.diskOnly
        configuration.diskStore = store
        let cache = try fixture.cache(configuration)
        let manager = try fixture.manager(cache: cache)
        let bytes = GeneratedImage.png(seed: 1, width: 9, height: 9)
        fixture.origin.route("/a.png", OriginResponse(headers: [("ETag", "\"1\"")], body: bytes))
        let url = fixture.origin.url("/a.png")
        let first = try await manager.loadImage(with: url, options: .refreshCached)
        #expect(first.outcome == .downloaded && first.path == nil && first.byteCount == bytes.count)
        #expect(store.kept.withLock { $0[url]?.image.validators?.etag } == "\"1\"")
        let hit = try await manager.loadImage(with: url)
        #expect(hit.outcome == .hit && hit.cacheType == .disk && hit.path == nil)
        #expect(hit.sha256 == SHA256.hash(bytes).bytes)
        #expect(await manager.diskImageExists(for: url) && manager.hasCached(key: url, atLeast: .decode))
        #expect(fixture.origin.requestCount() == 1)
        // 304: as young as if it had come now.
        store.kept.withLock { $0[url]?.image.record?.storedAt = 1 }
        let refreshed = try await manager.loadImage(with: url, options: .refreshCached)
        #expect(refreshed.outcome == .notModified)
        #expect(store.kept.withLock { $0[url]?.image.record?.storedAt ?? 0 } > 1)
        #expect(store.calls.withLock { $0["store"] } == 1)
        // Changed bytes take the place of the old ones.
        let new = GeneratedImage.png(seed: 2, width: 9, height: 9)
        fixture.origin.route("/a.png", OriginResponse(headers: [("ETag", "\"2\"")], body: new))
        #expect(try await manager.loadImage(with: url, options: .refreshCached).outcome == .downloaded)
        #expect(store.kept.withLock { $0[url]?.image.record?.digest } == SHA256.hash(new))
        // Spoiled by somebody: a miss, and fetched again.
        store.kept.withLock { $0[url]?.image.body = ImageBody(bytes) }
        #expect(!(await manager.loadedFromCache(url)))
        #expect(try await manager.loadImage(with: url).outcome == .downloaded)
        var locked = LoadRequest(url: url, key: url)
        locked.isFromCacheOnly = true
        locked.expectedDigest = SHA256.hash(bytes)
        #expect(await code(locked, manager) == .digestMismatch)
        locked.expectedDigest = SHA256.hash(new)
        #expect(try await manager.load(locked).outcome == .hit)
        // The store's own trouble is nobody's URL.
        store.fault.withLock { $0 = WebImageError(.localFault, "the database is away", underlyingCode: EIO) }
        let (other, _) = fixture.image("/b.png")
        #expect(await manager.failure(other)?.code == .localFault)
        #expect(!manager.failedURLs.contains(other))
        #expect(!fixture.folder.contents().contains { $0.hasPrefix("cache/v1/") && $0 != "cache/v1/" })
    }

    private func code(_ request: LoadRequest, _ manager: ImageManager) async -> WebImageError.Code? {
        do throws(WebImageError) {
            _ = try await manager.load(request)
            return nil
        } catch {
            return error.code
        }
    }

    @Test("A body that was spooled to a file reaches the store whole")
    func spooled() async throws {
        let fixture = try ManagerFixture()
        var configuration = ImageCache.Configuration()
        configuration.diskStore = store
        let manager = try fixture.manager(cache: try fixture.cache(configuration))
        // Noise hardly gets smaller: more than the megabyte that is kept in memory.
        let bytes = GeneratedImage.png(seed: 3, width: 900, height: 900)
        try #require(bytes.count > 1 << 20)
        fixture.origin.route("/large.png", OriginResponse(body: bytes))
        let url = fixture.origin.url("/large.png")
        #expect(try await manager.loadImage(with: url).byteCount == bytes.count)
        #expect(manager.cache.imageFromMemoryCache(forKey: url)?.bytes == bytes)
        manager.cache.clearMemory()
        let again = try await manager.loadImage(with: url)
        #expect(again.cacheType == .disk && again.sha256 == SHA256.hash(bytes).bytes)
        #expect(try await manager.loadImage(with: url).cacheType == .memory)
    }

    /// Passes everything on, and counts.
    private final class Counting: DiskImageStore {
        let images: DirectoryImageStore
        let stored = Locked(0)

        init(_ disk: DiskCache) { images = DirectoryImageStore(disk) }

        func contains(_ key: String) -> Bool { images.contains(key) }
        func image(forKey key: String) throws(WebImageError) -> StoredImage? { try images.image(forKey: key) }
        func store(_ image: StoredImage, forKey key: String) throws(WebImageError) {
            stored.withLock { $0 += 1 }
            try images.store(image, forKey: key)
        }
        func describe(record: CacheRecord, validators: HTTPValidators?, forKey key: String) throws(WebImageError) {
            try images.describe(record: record, validators: validators, forKey: key)
        }
        func remove(forKey key: String) throws(WebImageError) { try images.remove(forKey: key) }
        func removeAll() throws(WebImageError) -> Int { try images.removeAll() }
        func removeExpired(olderThan age: Double?, beyond size: Int?) throws(WebImageError) -> SweepReport? {
            try images.removeExpired(olderThan: age, beyond: size)
        }
        func diskUsage() throws(WebImageError) -> (count: Int, size: Int) { try images.diskUsage() }
        func path(forKey key: String) -> String? { images.path(forKey: key) }
    }

    @Test("A directory can stand behind a store of one's own", arguments: CacheMode.allCases)
    func behind(mode: CacheMode) async throws {
        let disk = try DiskCache(directory: folder.path("images"), configuration: mode.configuration())
        let counting = Counting(disk)
        let cache = try cache {
            $0.diskStore = counting
            $0.maxDiskAge = 100
        }
        try await cache.store(picture, forKey: key)
        #expect(counting.stored.withLock { $0 } == 1)
        let path = try #require(cache.cachePath(forKey: key))
        #expect(path == disk.images.path(of: CacheKey(key)) && readFile(path) == picture)
        #expect(try await cache.queryImage(forKey: key)?.image.bytes == picture)
        // Another record and validators, and a younger date; a key that is gone stays so.
        var record = try #require(try counting.image(forKey: key)?.record)
        age(path, modified: 200)
        record.storedAt += 1
        let known = HTTPValidators(etag: "\"1\"", key: key)
        try counting.describe(record: record, validators: known, forKey: key)
        let described = try #require(try counting.image(forKey: key))
        #expect(described.record == record && described.validators == known)
        try counting.describe(record: record, validators: known, forKey: "gone")
        #expect(!counting.contains("gone"))
        #expect(try await cache.deleteOldFiles()?.expired.count == 0)
        age(path, modified: 200)
        #expect(try await cache.deleteOldFiles()?.expired.count == 1)
        // Without a record nothing is known of it, and it is verified when it is asked for.
        try counting.store(StoredImage(body: ImageBody(picture), record: nil), forKey: key)
        #expect(try disk.find(forKey: key)?.standing == .lower(.none))
        #expect(try await cache.queryImage(forKey: key)?.image.info.level == .decode)
        #expect(try disk.find(forKey: key)?.standing == .verified)
        // Over half of the limit after it was passed: everything goes.
        let small = try self.cache {
            $0.diskStore = counting
            $0.maxDiskAge = -1
            $0.maxDiskSize = 1
        }
        #expect(try await small.deleteOldFiles()?.evicted.count == 1)
        try await cache.store(picture, forKey: key)
        #expect(try await cache.totalDiskCount() == 1)
        #expect(try await cache.clearDisk() == 1)
        #expect(isDirectoryEmpty)
    }
}

extension ImageManager {
    fileprivate func loadedFromCache(_ url: String) async -> Bool { await failure(url, .fromCacheOnly) == nil }
}
