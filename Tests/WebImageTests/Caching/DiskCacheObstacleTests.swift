import Glibc
import TestSupport
import Testing

@testable import WebImage

/// What somebody put where only a directory or a file of the cache may be.
enum Obstacle: String, CaseIterable, Sendable {
    case link, dangling, pipe, socket, device, directory, file

    /// Makes one; `target` is what a link leads to. False where this user may not.
    func make(at path: String, target: String) -> Bool {
        switch self {
        case .link: return symlink(target, path) == 0
        case .dangling: return symlink("nowhere", path) == 0
        case .pipe: return mkfifo(path, 0o600) == 0
        case .socket: return mknod(path, S_IFSOCK | 0o600, 0) == 0
        // A number no driver has.
        case .device: return mknod(path, S_IFCHR | 0o600, 0xFE_FE) == 0
        case .directory: return mkdir(path, 0o700) == 0 && mkdir(path + "/in", 0o700) == 0
        case .file:
            let file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
            return file >= 0 && close(file) == 0
        }
    }
}

@Suite("What is in the way in a disk cache", .timeLimit(.minutes(5)))
struct DiskCacheObstacleTests {
    private let directory = TemporaryDirectory()
    private let outside = TemporaryDirectory()
    private let key = CacheKey("http://example.org/a.png")
    private let bytes = Array("not really a picture".utf8)

    private func cache(_ mode: CacheMode = .full) throws -> DiskCache {
        try DiskCache(directory: directory.path, configuration: mode.configuration())
    }

    /// An image, and then the obstacle in the place of a part of its path, which is outside from then on.
    private func obstruct(_ part: String, by obstacle: Obstacle, mode: CacheMode = .full) throws -> Bool {
        try cache(mode).images.store(ImageBody(bytes), for: key, record: record(bytes))
        #expect(rename(directory.path(part), outside.path("moved")) == 0)
        return obstacle.make(at: directory.path(part), target: outside.path("moved"))
    }

    /// The image is a miss, is stored, and is found; what was in the way is in `bad`, and what is outside is as it was.
    private func check(_ cache: DiskCache, _ part: String, by obstacle: Obstacle) throws {
        let before = outside.contents()
        #expect(try cache.images.find(key) == nil)
        #expect(try cache.images.store(ImageBody(bytes), for: key, record: record(bytes)) == .stored)
        #expect(try cache.images.find(key)?.bytes() == bytes)
        #expect(try cache.images.find(key)?.standing == .verified)
        #expect(outside.contents() == before)
        let moved = directory.contents().filter { $0.hasPrefix("bad/") && $0 != "bad/" && !$0.hasSuffix(".m") }
        #expect(moved.count == (obstacle == .directory ? 2 : 1))
        // What was done to a file by hand is in no account; to a directory it is.
        if part != key.path { #expect(try cache.account.usage().count == 1) }
        #expect(try cache.audit.count().images == 1)
    }

    @Test("In the place of an image it is moved aside, and the image is stored anew", arguments: CacheMode.allCases)
    func images(mode: CacheMode) throws {
        for obstacle in Obstacle.allCases where obstacle != .file {
            let test = Self()
            guard try test.obstruct(key.path, by: obstacle, mode: mode) else { continue }
            try test.check(try test.cache(mode), key.path, by: obstacle)
        }
    }

    @Test("In the place of a directory too", arguments: [2, 4, 6], Obstacle.allCases.filter { $0 != .directory })
    func directories(length: Int, obstacle: Obstacle) throws {
        let part = String(key.path.prefix(length))
        guard try obstruct(part, by: obstacle) else { return }
        try check(try cache(), part, by: obstacle)
    }

    @Test("A store without a look-up before it moves it aside as well", arguments: [4, 6, 69])
    func storeAlone(length: Int) throws {
        let part = String(key.path.prefix(length))
        #expect(try obstruct(part, by: .link))
        let cache = try cache()
        #expect(try cache.images.store(ImageBody(bytes), for: key, record: record(bytes), replacing: true) == .stored)
        #expect(try cache.images.find(key)?.bytes() == bytes)
        #expect(outside.contents().filter { $0.hasPrefix("bad") } == [])
    }

    @Test("In the place of a record's own file it says nothing, and the next record takes its place")
    func records() throws {
        for obstacle in Obstacle.allCases {
            let test = Self()
            let cache = try test.cache(.sidecars)
            try cache.images.store(ImageBody(bytes), for: key, record: record(bytes))
            let path = test.directory.path(key.path + ".m")
            #expect(rename(path, test.outside.path("moved")) == 0)
            guard obstacle.make(at: path, target: "/etc/hostname") else { continue }
            let entry = try #require(try cache.images.find(key), "\(obstacle)")
            #expect(entry.standing == .unverified, "\(obstacle)")
            let info = ImageInfo(format: .png, width: 3, height: 4, level: .decode)
            #expect(try cache.images.raise(entry, to: info), "\(obstacle)")
            #expect(try cache.images.find(key)?.standing == .verified, "\(obstacle)")
        }
    }

    @Test("In the place of the folder of what was moved aside it gets another name")
    func bad() throws {
        #expect(symlink(outside.path, directory.path("bad")) == 0)
        let cache = try cache()
        try cache.images.store(ImageBody(bytes), for: key, record: record(bytes))
        damage(directory.path(key.path), length: 3)
        #expect(try cache.images.find(key) == nil)
        #expect(outside.contents() == [])
        #expect(directory.contents().contains { $0.hasPrefix("bad-stray-") })
        #expect(directory.contents().contains { $0.hasPrefix("bad/\(key.digest.hex)-") })
    }

    @Test("An image is removed by its URL, whatever stands in its place", arguments: Obstacle.allCases)
    func removal(obstacle: Obstacle) throws {
        let cache = try cache()
        try cache.images.store(ImageBody(bytes), for: key, record: record(bytes))
        #expect(unlink(directory.path(key.path)) == 0)
        guard obstacle.make(at: directory.path(key.path), target: outside.path) else { return }
        #expect(try cache.images.remove(key))
        #expect(try cache.images.find(key) == nil)
    }

    @Test("A read-only cache in which something is in the way has no such image, and nothing of it is moved")
    func readOnly() throws {
        for part in [4, 6, 69].map({ String(key.path.prefix($0)) }) {
            let test = Self()
            #expect(try test.obstruct(part, by: .link))
            let before = test.directory.contents()
            let alone = try DiskCache(directory: test.directory.path, configuration: .init(isReadOnly: true))
            #expect(try alone.images.find(key) == nil)
            let own = TemporaryDirectory()
            var configuration = DiskCache.Configuration()
            configuration.readOnlyDirectories = [test.directory.path]
            let cache = try DiskCache(directory: own.path, configuration: configuration)
            #expect(try cache.find(forKey: "http://example.org/a.png") == nil)
            #expect(test.directory.contents() == before)
        }
    }

    @Test("A link in the place of the cache's own folder is refused, and nothing is made where it leads")
    func ownFolder() throws {
        _ = try cache()
        #expect(rename(directory.path(".prefetch"), directory.path("aside")) == 0)
        #expect(symlink(outside.path, directory.path(".prefetch")) == 0)
        let error = #expect(throws: WebImageError.self) { try DiskCache(directory: directory.path) }
        #expect(error?.code == .localFault && error?.message.contains("symbolic link") == true)
        #expect(outside.contents() == [])
        // While it is open, too.
        #expect(unlink(directory.path(".prefetch")) == 0)
        let cache = try cache()
        #expect(rename(directory.path(".prefetch"), directory.path("aside2")) == 0)
        #expect(symlink(outside.path, directory.path(".prefetch")) == 0)
        #expect(throws: WebImageError.self) { try CacheProtection(cache) }
        #expect(throws: WebImageError.self) { try cache.condition() }
        #expect(outside.contents() == [])
    }
}
