import CLinux
import Glibc
import TestSupport
import Testing

@testable import WebImage

/// The ways to store that file systems ask for.
enum CacheMode: String, CaseIterable, Sendable {
    case full, namedFiles, sidecars, poorest

    func configuration(durability: Durability = .batch) -> DiskCache.Configuration {
        DiskCache.Configuration(
            durability: durability, usesUnnamedFiles: self == .namedFiles || self == .poorest ? .never : .auto,
            usesExtendedAttributes: self == .sidecars || self == .poorest ? .never : .auto)
    }

    var hasSidecars: Bool { self == .sidecars || self == .poorest }
}

func record(_ bytes: [UInt8], level: ValidationLevel = .decode, storedAt: Int = 1000) -> CacheRecord {
    CacheRecord(
        level: level, format: .png, width: 3, height: 4, length: bytes.count, digest: SHA256.hash(bytes),
        storedAt: storedAt)
}

/// Gives a published file another length, as a power cut or a careless person would.
func damage(_ path: String, length: Int) {
    chmod(path, 0o600)
    #expect(truncate(path, length) == 0)
    chmod(path, 0o444)
}

@Suite("Disk cache", .timeLimit(.minutes(5)))
struct DiskCacheTests {
    private let directory = TemporaryDirectory()
    private let key = CacheKey("http://example.org/a.png")
    private let bytes = Array("not really a picture".utf8)

    private static let empty = [
        ".prefetch/", ".prefetch/account", ".prefetch/id", ".prefetch/locks/", "CACHEDIR.TAG", "v1/",
    ]

    /// What the directory holds with these images and nothing else.
    private func contents(_ keys: [CacheKey], sidecars: Bool = false) -> [String] {
        var names = Set(Self.empty)
        for key in keys {
            names.formUnion(["\(key.path.prefix(4))/", "\(key.leaf)/", key.path])
            if sidecars { names.insert(key.path + ".m") }
        }
        return names.sorted()
    }

    private func cache(
        _ mode: CacheMode = .full, durability: Durability = .batch
    ) throws -> DiskCache {
        try DiskCache(directory: directory.path, configuration: mode.configuration(durability: durability))
    }

    @Test("A new cache has its tag and its folders, parents included")
    func layout() throws {
        let cache = try DiskCache(directory: directory.path("a/b/c"))
        #expect(directory.contents() == ["a/", "a/b/", "a/b/c/"] + Self.empty.map { "a/b/c/\($0)" })
        let tag = String(decoding: directory.read("a/b/c/CACHEDIR.TAG") ?? [], as: UTF8.self)
        #expect(tag.hasPrefix("Signature: 8a477f597d28d172789f06886806bc55\n"))
        #expect(cache.warnings == [])
        _ = try DiskCache(directory: directory.path("a/b/c"))
    }

    @Test("A stored image is one file with its record, in every mode", arguments: CacheMode.allCases)
    func store(mode: CacheMode) throws {
        let cache = try cache(mode)
        #expect(try cache.images.find(key) == nil)
        let validators = HTTPValidators(etag: "\"1\"")
        #expect(
            try cache.images.store(ImageBody(bytes), for: key, record: record(bytes), validators: validators) == .stored
        )
        #expect(directory.contents() == contents([key], sidecars: mode.hasSidecars))
        #expect(directory.read(key.path) == bytes)
        let entry = try #require(try cache.images.find(key))
        #expect(entry.record == record(bytes) && entry.standing == .verified && entry.size == bytes.count)
        #expect(try entry.bytes() == bytes)
        #expect(try entry.digest() == SHA256.hash(bytes))
        #expect(cache.images.validators(of: entry) == validators)
        var status = stat()
        #expect(
            stat(entry.path, &status) == 0 && status.st_mode & 0o7777 == 0o444 & ~umaskOfTest() && status.st_nlink == 1)
        #expect(try cache.audit.count().images == 1)
        #expect(try cache.audit.count().bytes == bytes.count)
        #expect(
            try cache.images.store(ImageBody(bytes), for: key, record: record(bytes)) == .alreadyPresent(record(bytes)))
        #expect(directory.contents() == contents([key], sidecars: mode.hasSidecars))
        #expect(try cache.images.remove(key))
        #expect(try !cache.images.remove(key))
        #expect(try cache.images.find(key) == nil)
        #expect(directory.contents().filter { $0.hasPrefix("v1/") && !$0.hasSuffix("/") } == [])
    }

    @Test("Every durability stores and syncs", arguments: Durability.allCases)
    func durability(level: Durability) throws {
        for mode in CacheMode.allCases {
            let cache = try cache(mode, durability: level)
            try cache.images.store(ImageBody(bytes), for: CacheKey(mode.rawValue), record: record(bytes))
            try cache.sync()
            #expect(try cache.images.find(CacheKey(mode.rawValue))?.standing == .verified)
        }
    }

    @Test("A large body that has gone to a file is published without a copy", arguments: CacheMode.allCases)
    func spooled(mode: CacheMode) throws {
        let cache = try cache(mode)
        let body = ImageBody(memoryLimit: 1000) { () throws(WebImageError) in try cache.temporaryFiles.open() }
        let large = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        for start in stride(from: 0, to: large.count, by: 9_999) {
            try large[start..<min(start + 9_999, large.count)].withUnsafeBytes { try body.append($0) }
        }
        let file = try #require(body.fileDescriptor)
        var before = stat()
        fstat(file, &before)
        #expect(directory.contents() == Self.empty)
        #expect(try cache.images.store(body, for: key, record: record(large)) == .stored)
        #expect(directory.read(key.path) == large)
        var after = stat()
        stat(directory.path(key.path), &after)
        let isSameFile = before.st_ino == after.st_ino
        #expect(isSameFile == (mode == .full || mode == .sidecars))
        #expect(directory.contents() == contents([key], sidecars: mode.hasSidecars))
    }

    @Test("A file of another length, or empty, is moved aside and is a miss", arguments: CacheMode.allCases)
    func damaged(mode: CacheMode) throws {
        let cache = try cache(mode)
        for length in [0, 5, 21] {
            try cache.images.store(ImageBody(bytes), for: key, record: record(bytes))
            damage(directory.path(key.path), length: length)
            #expect(try cache.images.find(key) == nil)
            #expect(try cache.images.find(key) == nil)
        }
        let moved = directory.contents().filter { $0.hasPrefix("bad/") && !$0.hasSuffix("/") }
        #expect(moved.count == (mode.hasSidecars ? 6 : 3))
        #expect(moved.allSatisfy { $0.hasPrefix("bad/\(key.digest.hex)-") })
        #expect(try cache.audit.count().images == 0)
    }

    @Test("A store over a damaged file mends it", arguments: CacheMode.allCases)
    func mends(mode: CacheMode) throws {
        let cache = try cache(mode)
        try cache.images.store(ImageBody(bytes), for: key, record: record(bytes))
        damage(directory.path(key.path), length: 3)
        #expect(try cache.images.store(ImageBody(bytes), for: key, record: record(bytes)) == .stored)
        #expect(try cache.images.find(key)?.bytes() == bytes)
    }

    @Test("A file without a record is unverified until it is raised", arguments: CacheMode.allCases)
    func unverified(mode: CacheMode) throws {
        let cache = try cache(mode)
        try cache.images.store(ImageBody(bytes), for: key, record: record(bytes))
        // As cp does it: the bytes and nothing else.
        unlink(directory.path(key.path))
        unlink(directory.path(key.path + ".m"))
        directory.write(bytes, to: key.path)
        let entry = try #require(try cache.images.find(key))
        #expect(entry.standing == .unverified && entry.record == nil && entry.needsVerification)
        #expect(try cache.images.raise(entry, to: ImageInfo(format: .gif, width: 7, height: 8, level: .structure)))
        let again = try #require(try cache.images.find(key, atLeast: .structure))
        #expect(
            again.standing == .verified && again.record?.digest == SHA256.hash(bytes) && again.record?.format == .gif)
        #expect(again.record?.width == 7 && again.record?.height == 8 && again.record?.length == bytes.count)
        unlink(directory.path(key.path))
        directory.write([], to: key.path)
        unlink(directory.path(key.path + ".m"))
        #expect(try cache.images.find(key) == nil)
    }

    @Test("A lower level is told, raised in place, and never lowered", arguments: CacheMode.allCases)
    func levels(mode: CacheMode) throws {
        let cache = try cache(mode)
        try cache.images.store(
            ImageBody(bytes), for: key, record: record(bytes, level: .header), validators: HTTPValidators(etag: "\"e\"")
        )
        let entry = try #require(try cache.images.find(key, atLeast: .decode))
        #expect(entry.standing == .lower(.header))
        #expect(try cache.images.find(key, atLeast: .header)?.standing == .verified)
        try cache.images.raise(entry, to: ImageInfo(format: .png, width: 3, height: 4, level: .decode))
        let raised = try #require(try cache.images.find(key, atLeast: .decode))
        #expect(raised.standing == .verified && raised.record == record(bytes) && raised.inode == entry.inode)
        #expect(cache.images.validators(of: raised)?.etag == "\"e\"")
        try cache.images.raise(raised, to: ImageInfo(format: .png, width: 3, height: 4, level: .header))
        #expect(try cache.images.find(key)?.record?.level == .decode)
        var status = stat()
        #expect(stat(raised.path, &status) == 0 && status.st_mode & 0o222 == 0)
    }

    @Test(
        "The first whole file of a level stays; a better or a refreshed one takes its place",
        arguments: CacheMode.allCases)
    func replacing(mode: CacheMode) throws {
        let cache = try cache(mode)
        let other = Array("another picture".utf8)
        try cache.images.store(ImageBody(bytes), for: key, record: record(bytes, level: .structure))
        let kept = try cache.images.store(ImageBody(other), for: key, record: record(other, level: .structure))
        #expect(kept == .alreadyPresent(record(bytes, level: .structure)))
        // The same bytes at a higher level: the record is raised, the file stays.
        let inode = try cache.images.find(key)?.inode
        #expect(
            try cache.images.store(ImageBody(bytes), for: key, record: record(bytes)) == .alreadyPresent(record(bytes)))
        #expect(try cache.images.find(key)?.inode == inode)
        let reader = try #require(try cache.images.find(key))
        #expect(try cache.images.store(ImageBody(other), for: key, record: record(other), replacing: true) == .stored)
        #expect(try cache.images.find(key)?.bytes() == other)
        #expect(try cache.images.find(key)?.record == record(other))
        // Whoever has the old one open keeps it.
        #expect(try reader.bytes() == bytes)
        #expect(
            try cache.images.store(ImageBody(other), for: key, record: record(other), replacing: true)
                == .alreadyPresent(record(other)))
        #expect(try cache.images.store(ImageBody(bytes), for: key, record: record(bytes, level: .header)) != .stored)
        #expect(directory.contents() == contents([key], sidecars: mode.hasSidecars))
    }

    @Test("SDDiskCache's questions are answered by key")
    func keys() throws {
        let cache = try cache()
        let url = "http://example.org/a.png"
        #expect(cache.existingPath(forKey: url) == nil)
        #expect(try cache.find(forKey: url, atLeast: .none)?.bytes() == nil)
        try cache.images.store(ImageBody(bytes), for: CacheKey(url), record: record(bytes))
        #expect(cache.existingPath(forKey: url) != nil)
        #expect(try cache.find(forKey: url, atLeast: .none)?.bytes() == bytes)
        #expect(readFile(cache.images.path(of: CacheKey(url))) == bytes)
        #expect(try cache.images.remove(CacheKey(url)))
        #expect(cache.existingPath(forKey: url) == nil)
    }

    @Test(
        "Hostile keys stay inside",
        arguments: ["../../etc/x", "/etc/passwd", "a\0b", String(repeating: "../", count: 2700)])
    func hostile(url: String) throws {
        let cache = try DiskCache(directory: directory.path("cache"))
        try cache.images.store(ImageBody(bytes), for: CacheKey(url), record: record(bytes))
        #expect(try cache.find(forKey: url, atLeast: .none)?.bytes() == bytes)
        #expect(directory.contents().filter { !$0.hasPrefix("cache/") } == [])
        #expect(
            directory.contents().filter { !$0.hasSuffix("/") }
                == [
                    "cache/.prefetch/account", "cache/.prefetch/id", "cache/CACHEDIR.TAG",
                    "cache/\(CacheKey(url).path)",
                ])
    }

    @Test("A directory everybody can write to is warned of, with the remedy")
    func worldWritable() throws {
        mkdir(directory.path("c"), 0o700)
        chmod(directory.path("c"), 0o777)
        let cache = try DiskCache(directory: directory.path("c"))
        #expect(cache.warnings.count == 1)
        #expect(
            cache.warnings.first?.contains(directory.path("c")) == true
                && cache.warnings.first?.contains("chmod") == true)
    }

    @Test("A cache that cannot be made names its directory and the reason")
    func unmakable() throws {
        directory.write([1], to: "file")
        let error = #expect(throws: WebImageError.self) { try DiskCache(directory: directory.path("file/cache")) }
        #expect(error?.code == .localFault && error?.underlyingCode == ENOTDIR)
        #expect(error?.message.contains(directory.path("file/cache")) == true)
    }

    @Test("A read-only cache finds, and changes nothing")
    func readOnly() throws {
        let missing = DiskCache.Configuration(isReadOnly: true)
        #expect(throws: WebImageError.self) {
            try DiskCache(directory: directory.path("none"), configuration: missing)
        }
        let writer = try cache()
        try writer.images.store(ImageBody(bytes), for: key, record: record(bytes, level: .header))
        let reader = try DiskCache(directory: directory.path, configuration: missing)
        let entry = try #require(try reader.images.find(key))
        #expect(try !reader.images.raise(entry, to: ImageInfo(format: .png, width: 1, height: 1, level: .decode)))
        let error = #expect(throws: WebImageError.self) {
            try reader.images.store(ImageBody([1]), for: CacheKey("b"), record: record([1]))
        }
        #expect(error?.code == .localFault && error?.underlyingCode == EROFS)
        damage(directory.path(key.path), length: 1)
        #expect(try reader.images.find(key) == nil)
        #expect(directory.contents() == contents([key]))
    }

    @Test("Stale temporary files are removed, young ones are not")
    func staleFiles() throws {
        let cache = try cache()
        try cache.images.store(ImageBody(bytes), for: key, record: record(bytes))
        directory.write([1], to: "\(key.leaf)/.t-1-old")
        directory.write([1], to: "\(key.leaf)/.t-1-new")
        var times = [timespec(tv_sec: 1000, tv_nsec: 0), timespec(tv_sec: 1000, tv_nsec: 0)]
        utimensat(AT_FDCWD, directory.path("\(key.leaf)/.t-1-old"), &times, 0)
        #expect(try cache.temporaryFiles.removeStale() == 1)
        #expect(directory.contents() == (contents([key]) + ["\(key.leaf)/.t-1-new"]).sorted())
    }

    private func umaskOfTest() -> mode_t {
        let old = umask(0o022)
        umask(old)
        return old
    }
}
