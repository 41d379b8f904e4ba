import CLinux
import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

/// A record is believed only of the file it was made for: whoever makes a file can write it any record, but not that it is another file.
@Suite("Copies of caches", .timeLimit(.minutes(5)))
struct CopiedCacheTests {
    private let folder = TemporaryDirectory()
    private let image = GeneratedImage.png(seed: 4, width: 12, height: 9)
    private let coder = ImageCoder()

    private func open(_ name: String, _ mode: CacheMode = .full) throws -> ImageCache {
        var configuration = ImageCache.Configuration()
        configuration.disk = mode.configuration()
        return try ImageCache(directory: folder.path(name), configuration: configuration)
    }

    private func make(_ mode: CacheMode = .full, keys: [String] = ["a"]) throws {
        let disk = try open("cache", mode).disk
        for key in keys {
            try disk.images.store(ImageBody(image), for: CacheKey(key), record: record(image))
        }
    }

    private func standing(_ name: String, _ key: String = "a", _ mode: CacheMode = .full) throws -> CacheEntry.Standing?
    {
        try open(name, mode).disk.images.find(CacheKey(key))?.standing
    }

    /// Text of the same length in place of the image, with its record.
    private func falsify(_ name: String, _ key: String = "a") throws {
        let path = folder.path("\(name)/\(CacheKey(key).path)")
        chmod(path, 0o600)
        let file = Glibc.open(path, O_WRONLY | O_CLOEXEC)
        defer { close(file) }
        let text = Array("<html>".utf8) + [UInt8](repeating: 0x20, count: image.count - 6)
        #expect(file >= 0 && pwrite(file, text, text.count, 0) == text.count)
        chmod(path, 0o444)
    }

    private func run(_ line: String) throws {
        #expect(LoopFileSystem.shell("cd '\(folder.path)' && \(line)"), "\(line)")
    }

    @Test(
        "A copy is verified at its first hit, once, and what is no image is a miss",
        arguments: [
            "mkdir copy && tar -C cache --xattrs -cf - v1 | tar -C copy --xattrs --xattrs-include='*' -xf -",
            "cp -a cache copy",
        ])
    func copied(line: String) throws {
        try make(keys: ["a", "b"])
        try run(line)
        #expect(try standing("copy") == .unverified)
        try falsify("copy", "b")
        let cache = try open("copy")
        #expect(cache.disk.existingPath(forKey: "a") != nil)
        #expect(try cache.find("a", atLeast: .decode, coder: coder)?.bytes == image)
        #expect(try cache.find("a", atLeast: .decode, coder: coder)?.bytes == nil)
        let entry = try #require(try cache.disk.images.find(CacheKey("a")))
        #expect(entry.standing == .verified && entry.record?.digest == SHA256.hash(image))
        #expect(try cache.find("b", atLeast: .decode, coder: coder) == nil)
        #expect(folder.contents().contains { $0.hasPrefix("copy/bad/\(CacheKey("b").digest.hex)") })
        // The original was not touched.
        #expect(try standing("cache") == .verified && standing("cache", "b") == .verified)
    }

    @Test("A record in a file of its own is believed no more of a copy", arguments: CacheMode.allCases)
    func modes(mode: CacheMode) throws {
        try make(mode)
        #expect(try standing("cache", "a", mode) == .verified)
        try run("cp -a cache copy")
        #expect(try standing("copy", "a", mode) == .unverified)
        #expect(try open("copy", mode).find("a", atLeast: .decode, coder: coder) != nil)
        #expect(try standing("copy", "a", mode) == .verified)
    }

    @Test("A cache that is moved, and a file that gets other names, dates and permissions, is the same")
    func moved() throws {
        try make()
        try run(
            "mv cache moved && f=moved/\(CacheKey("a").path) && ln $f other && touch -d 2001-01-01 $f && chmod 600 $f")
        #expect(try standing("moved") == .verified)
        try run("rm other && ln -s moved link")
        #expect(try standing("link") == .verified)
    }

    @Test("A valid image with another digest than its record has is not the one that was copied")
    func replaced() throws {
        try make()
        try run("cp -a cache copy")
        let path = folder.path("copy/\(CacheKey("a").path)")
        let claimed = record([1] + image.dropFirst())
        let file = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        chmod(path, 0o600)
        #expect(
            ImageRecords.set(ImageRecords.attribute, claimed.encoded(for: CacheKey("a"), file: 7), of: file) == 0)
        chmod(path, 0o444)
        let cache = try open("copy")
        #expect(try cache.find("a", atLeast: .decode, coder: coder) == nil)
        #expect(try cache.disk.images.find(CacheKey("a")) == nil)
    }

    @Test("Nothing is written in a read-only copy: it is verified each time, and what is no image is a miss")
    func readOnly() throws {
        try make(keys: ["a", "b"])
        try run("cp -a cache copy")
        try falsify("copy", "b")
        var configuration = ImageCache.Configuration()
        configuration.disk.readOnlyDirectories = [folder.path("copy")]
        let cache = try ImageCache(directory: folder.path("own"), configuration: configuration)
        for _ in 0..<2 {
            #expect(try cache.find("a", atLeast: .decode, coder: coder)?.bytes == image)
            #expect(try cache.find("b", atLeast: .decode, coder: coder) == nil)
        }
        #expect(try ImageProof(cache.disk, level: .decode, unverifiable: .skip).find("b") == nil)
        #expect(try ImageProof(cache.disk, level: .decode, unverifiable: .skip).find("a")?.bytes() == image)
        #expect(folder.contents().contains("copy/\(CacheKey("b").path)"))
    }

    @Test("verify names a copy that its record does not fit, and repair records the others")
    func audit() async throws {
        try make(keys: ["a", "b"])
        try run("cp -a cache copy")
        try falsify("copy", "b")
        let audit = try open("copy").disk.audit
        var found: [CacheFinding.Problem] = []
        _ = try await audit.verify(report: { found.append($0.problem) })
        #expect(found.count == 2 && found.contains(.digest) && found.contains(.noRecord))
        _ = try await audit.repair { _, _ in }
        #expect(try standing("copy") == .verified && standing("copy", "b") == nil)
    }

    @Test("Where everybody may write, the files of other users are verified each time", .enabled(if: geteuid() == 0))
    func otherUsers() throws {
        try make()
        chmod(folder.path("cache"), 0o777)
        let path = folder.path("cache/\(CacheKey("a").path)")
        #expect(try standing("cache") == .verified)
        #expect(chown(path, 4711, 4711) == 0)
        #expect(try standing("cache") == .unverified)
        #expect(try open("cache").find("a", atLeast: .decode, coder: coder)?.bytes == image)
        #expect(try open("cache").find("a", atLeast: .decode, coder: coder)?.bytes == image)
        // Those who share a cache trust one another.
        chmod(folder.path("cache"), 0o775)
        #expect(try standing("cache") == .verified)
    }
}
