import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

/// Directories behind the cache's own, which are looked up and never changed.
@Suite("Read-only caches", .timeLimit(.minutes(5)))
struct ReadOnlyTierTests {
    private let folder = TemporaryDirectory()
    private let image = GeneratedImage.png(seed: 4, width: 12, height: 9)

    private func cache(_ tiers: [String]) throws -> DiskCache {
        var configuration = DiskCache.Configuration()
        configuration.readOnlyDirectories = tiers.map { folder.path($0) }
        return try DiskCache(directory: folder.path("own"), configuration: configuration)
    }

    /// A cache of ours with one image under `a`; returns the path of its file.
    @discardableResult
    private func tier(_ name: String, level: ValidationLevel = .decode, bytes: [UInt8]? = nil) throws -> String {
        let disk = try DiskCache(directory: folder.path(name))
        let bytes = bytes ?? image
        try disk.images.store(ImageBody(bytes), for: CacheKey("a"), record: record(bytes, level: level))
        return disk.images.path(of: CacheKey("a"))
    }

    /// Names, bytes and dates of everything in a folder.
    private func state(_ name: String) -> [String] {
        folder.contents().filter { $0.hasPrefix("\(name)/") }.map { path in
            var status = stat()
            lstat(folder.path(path), &status)
            return "\(path) \(status.st_mode) \(status.st_size) \(status.st_mtim.tv_sec) \(status.st_ctim.tv_nsec)"
        }
    }

    @Test(
        "An image of a read-only cache is found where it is, the own one goes first, and the order is that of the list")
    func order() throws {
        let one = try tier("one")
        let two = try tier("two", bytes: GeneratedImage.png(seed: 5, width: 3, height: 3))
        let before = state("one") + state("two")
        let disk = try cache(["one", "two"])
        let entry = try #require(try disk.find(forKey: "a"))
        #expect(entry.path == one && !entry.needsVerification && entry.record?.digest == SHA256.hash(image))
        #expect(try disk.find(forKey: "a", atLeast: .none)?.bytes() == image)
        #expect(disk.existingPath(forKey: "a") != nil && disk.existingPath(forKey: "a") == one)
        #expect(try cache(["two", "one"]).existingPath(forKey: "a") == two)
        #expect(disk.existingPath(forKey: "b") == nil)
        // They are not the cache's own.
        #expect(
            try disk.audit.count().images == 0 && disk.images.find(CacheKey("a")) == nil
                && !disk.images.remove(CacheKey("a")))
        try disk.images.store(ImageBody(image), for: CacheKey("a"), record: record(image))
        #expect(disk.existingPath(forKey: "a") == disk.images.path(of: CacheKey("a")))
        #expect(state("one") + state("two") == before)
    }

    @Test("What is damaged in a read-only cache is a miss and stays where it is")
    func damaged() throws {
        damage(try tier("one"), length: 20)
        let before = state("one")
        let disk = try cache(["one"])
        #expect(
            try disk.find(forKey: "a") == nil && disk.find(forKey: "a", atLeast: .none)?.bytes() == nil
                && disk.existingPath(forKey: "a") == nil)
        #expect(state("one") == before)
    }

    @Test("A folder that is not there is named")
    func missing() throws {
        let error = #expect(throws: WebImageError.self) { try cache(["none"]) }
        #expect(error?.code == .localFault && error?.message.contains(folder.path("none")) == true)
    }

    private func manager(_ fixture: ManagerFixture, _ tiers: [String]) throws -> ImageManager {
        var configuration = ImageCache.Configuration.diskOnly
        configuration.disk.readOnlyDirectories = tiers.map { folder.path($0) }
        return try fixture.manager(cache: fixture.cache(configuration))
    }

    @Test("A manager takes an image of a lower level after a check each time, and writes nothing down there")
    func lower() async throws {
        let fixture = try ManagerFixture()
        let url = fixture.origin.url("/a.png")
        let disk = try DiskCache(directory: folder.path("one"))
        try disk.images.store(ImageBody(image), for: CacheKey(url), record: record(image, level: .header))
        let broken = fixture.image("/broken.png")
        // Its record says that it is whole.
        let bad = [UInt8](image.dropLast(30))
        try disk.images.store(ImageBody(bad), for: CacheKey(broken.url), record: record(bad, level: .header))
        let before = state("one")
        let manager = try manager(fixture, ["one"])
        for _ in 0..<2 {
            let loaded = try await manager.loadImage(with: url)
            #expect(loaded.outcome == .hit && loaded.path == disk.images.path(of: CacheKey(url)))
            #expect((loaded.info.width, loaded.info.height) == (12, 9))
        }
        #expect(fixture.origin.requestCount() == 0)
        let loaded = try await manager.loadImage(with: broken.url)
        #expect(loaded.outcome == .downloaded && manager.cache.disk.existingPath(forKey: broken.url) == loaded.path)
        #expect(try manager.cache.disk.find(forKey: broken.url, atLeast: .none)?.bytes() == broken.bytes)
        #expect(state("one") == before)
    }

    @Test("SDWebImage's own folders are read-only caches too", arguments: SDWebImageFileName.Layout.allCases)
    func sdWebImage(layout: SDWebImageFileName.Layout) async throws {
        let fixture = try ManagerFixture()
        let (url, bad) = (fixture.origin.url("/a.jpg?b=1.png"), fixture.image("/bad.png"))
        var path = "app"
        for part in [""] + layout.folder.split(separator: "/").map({ "/\($0)" }) {
            path += part
            #expect(mkdir(folder.path(path), 0o777) == 0)
        }
        let name = try #require(SDWebImageFileName.name(forKey: url, layout: layout))
        folder.write(image, to: "\(path)/\(name)")
        let badName = try #require(SDWebImageFileName.name(forKey: bad.url, layout: layout))
        folder.write(Array(bad.bytes.dropLast(20)), to: "\(path)/\(badName)")
        let before = state("app")
        let manager = try manager(fixture, ["app"])
        for _ in 0..<2 {
            let loaded = try await manager.loadImage(with: url)
            #expect(loaded.outcome == .hit && loaded.path == folder.path("\(path)/\(name)"))
        }
        #expect(fixture.origin.requestCount() == 0)
        // Nobody vouches for it, and its bytes show that it is cut.
        #expect(try await manager.loadImage(with: bad.url).outcome == .downloaded)
        #expect(state("app") == before)
    }
}
