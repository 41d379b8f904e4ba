import Glibc
import Origin
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("Folders of images", .timeLimit(.minutes(5)))
struct ImageFolderTests {
    private let directory = TemporaryDirectory()

    private func cache(_ images: [[UInt8]]) throws -> (DiskCache, [CacheEntry]) {
        let cache = try DiskCache(directory: directory.path("cache"))
        let entries = try images.enumerated().map { index, bytes in
            let record = CacheRecord(
                level: .decode, format: .png, width: 1, height: 1, length: bytes.count, digest: nil, storedAt: 1)
            try cache.images.store(ImageBody(bytes), for: CacheKey("\(index)"), record: record)
            return try #require(try cache.images.find(CacheKey("\(index)")))
        }
        return (cache, entries)
    }

    private func links(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_nlink) : 0
    }

    @Test("Images get a second name, and the same ones again are in order")
    func linked() throws {
        let (_, entries) = try cache([[1], [2, 2]])
        let path = directory.path("a/b/out")
        for round in 0..<2 {
            let folder = try ImageFolder(path: path) { Issue.record("copied: \($0)") }
            try folder.add(entries[0], as: "1.png")
            try folder.add(entries[1], as: "2.png")
            #expect(folder.tally == .init(linked: round == 0 ? 2 : 0, present: round == 0 ? 0 : 2))
        }
        #expect(links(path + "/1.png") == 2 && readFile(path + "/2.png") == [2, 2])
        // Whatever happens to the first name.
        unlink(entries[0].path)
        let folder = try ImageFolder(path: path)
        try folder.add(entries[0], as: "1.png")
        #expect(folder.tally.present == 1)
    }

    @Test("Another file is never overwritten, whatever it is")
    func taken() throws {
        let (_, entries) = try cache([[1, 2]])
        directory.write([9, 9], to: "same length")
        directory.write([9], to: "shorter")
        mkdir(directory.path("folder"), 0o700)
        symlink(entries[0].path, directory.path("link"))
        mkfifo(directory.path("pipe"), 0o600)
        let folder = try ImageFolder(path: directory.path)
        for name in ["same length", "shorter", "folder", "link", "pipe"] {
            #expect {
                try folder.add(entries[0], as: name)
            } throws: { error in
                (error as? PrefetchError)?.kind == .cacheUnavailable
                    && (error as? PrefetchError)?.message.contains("another file") == true
            }
        }
        #expect(directory.read("same length") == [9, 9] && directory.read("shorter") == [9])
        // A copy that somebody made is as good.
        directory.write([1, 2], to: "copy")
        try folder.add(entries[0], as: "copy")
        #expect(folder.tally == .init(present: 1))
    }

    @Test("On another file system they are copies, which is said once")
    func otherFileSystem() throws {
        let other = TemporaryDirectory(in: "/dev/shm")
        var (here, there) = (stat(), stat())
        stat(directory.path, &here)
        stat(other.path, &there)
        try #require(here.st_dev != there.st_dev)
        let big = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        let (_, entries) = try cache([big, [1]])
        let reasons = Locked([String]())
        for round in 0..<2 {
            let folder = try ImageFolder(path: other.path("out")) { reason in reasons.withLock { $0.append(reason) } }
            for (index, entry) in entries.enumerated() { try folder.add(entry, as: "\(index).png") }
            #expect(folder.tally == .init(copied: round == 0 ? 2 : 0, present: round == 0 ? 0 : 2))
        }
        #expect(reasons.withLock { $0 }.count == 1)
        #expect(reasons.withLock { $0 }.first?.contains("another file system") == true)
        #expect(readFile(other.path("out/0.png")) == big && readFile(other.path("out/1.png")) == [1])
        #expect(other.contents() == ["out/", "out/0.png", "out/1.png"])
    }

    @Test("A full disk is said, leaves no half file, and the next run adds the rest", .enabled(if: getuid() == 0))
    func fullDisk() throws {
        let mountPoint = TemporaryDirectory()
        guard mount("tmpfs", mountPoint.path, "tmpfs", 0, "size=250k") == 0 else {
            // A container without the right to mount.
            return
        }
        defer { umount2(mountPoint.path, Int32(MNT_DETACH)) }
        let (_, entries) = try cache((0..<4).map { [UInt8](repeating: $0, count: 100_000) })
        let folder = try ImageFolder(path: mountPoint.path)
        #expect {
            for (index, entry) in entries.enumerated() { try folder.add(entry, as: "\(index).png") }
        } throws: { error in
            (error as? PrefetchError)?.kind == .inputOutput
                && (error as? PrefetchError)?.message.contains("No space left") == true
        }
        #expect(folder.tally.copied == 2 && mountPoint.contents() == ["0.png", "1.png"])
        #expect(mount("tmpfs", mountPoint.path, "tmpfs", UInt(MS_REMOUNT), "size=1m") == 0)
        let again = try ImageFolder(path: mountPoint.path)
        for (index, entry) in entries.enumerated() { try again.add(entry, as: "\(index).png") }
        #expect(again.tally == .init(copied: 2, present: 2))
    }

    @Test("Where no folder can be made it says so")
    func refused() {
        directory.write([1], to: "file")
        for path in [directory.path("file"), directory.path("file/below"), "/proc/none/out", "/proc"] {
            #expect {
                try ImageFolder(path: path)
            } throws: { error in
                (error as? PrefetchError)?.kind == .cacheUnavailable
            }
        }
    }

    @Test("Names are the line's number and the format's extension, and nothing else")
    func names() throws {
        #expect(BatchExport.name(7, .jpeg, width: 6) == "000007.jpg")
        #expect(BatchExport.name(1_234_567, .png, width: 6) == "1234567.png")
        #expect(BatchExport.name(1, .unknown, width: 8) == "00000001.bin")
        for (line, name) in [
            (1, "00000/000001.jpg"), (10_000, "00000/010000.jpg"), (10_001, "00001/010001.jpg"),
            (2_000_000_000, "199999/2000000000.jpg"),
        ] { #expect(BatchExport.name(line, .jpeg, width: 6, isSharded: true) == name) }
        // Without a record only the bytes can say what it is.
        let (cache, _) = try cache([])
        let path = "\(directory.path("cache"))/\(CacheKey("x").path)"
        var folder = directory.path("cache")
        for part in CacheKey("x").path.split(separator: "/").dropLast() {
            folder += "/\(part)"
            mkdir(folder, 0o700)
        }
        let file = try #require(fopen(path, "w"))
        let png = GeneratedImage.png(seed: 1, width: 4, height: 4)
        fwrite(png, 1, png.count, file)
        fclose(file)
        let entry = try #require(try cache.images.find(CacheKey("x"), atLeast: .none))
        #expect(entry.record == nil && entry.format == .png)
        let line = ExportedLine(BatchResults.Line(line: 1, url: "x", outcome: .hit), entry)
        #expect(line.image == .init(path: path, bytes: png.count))
    }
}
