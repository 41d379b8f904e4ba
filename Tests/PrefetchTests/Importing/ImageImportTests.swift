import Glibc
import Origin
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("Importing images", .timeLimit(.minutes(5)))
struct ImageImportTests {
    private let folder = TemporaryDirectory()

    private func image(_ index: Int) -> [UInt8] { GeneratedImage.png(seed: UInt64(index), width: 4, height: 4) }

    /// A hundred files of an old cache go to the new place, each under its URL. The original moves them and removes the old directory; an import
    /// only reads its source.
    @Test("SDImageCacheTests 44 DiskCacheMigrationFromOldVersion", arguments: SDWebImageFileName.Layout.allCases)
    func migration(layout: SDWebImageFileName.Layout) async throws {
        let urls = (0..<100).map { "https://example.org/\($0).png?v=\($0 % 3)" }
        var path = "old"
        for part in [""] + layout.folder.split(separator: "/").map({ "/\($0)" }) {
            path += part
            #expect(mkdir(folder.path(path), 0o777) == 0)
        }
        for (index, url) in urls.enumerated() {
            let name = try #require(SDWebImageFileName.name(forKey: url, layout: layout))
            folder.write(image(index), to: "\(path)/\(name)")
        }
        let before = folder.contents()
        let list = try URLList(path: write(urls))
        let disk = try DiskCache(directory: folder.path("new"))
        let work = ImageImport(into: disk, rule: .url, level: .decode, most: 1 << 20) { name, reason in
            Issue.record("\(name): \(reason)")
        }
        let source = ImageSource.sdWebImage(try SDWebImageFolder(path: folder.path("old"), layout: layout))
        let tally = try await work.run(source, list: list)
        #expect(tally == ImageImport.Tally(stored: 100))
        #expect(try disk.audit.count().images == 100)
        for (index, url) in urls.enumerated() {
            #expect(try disk.find(forKey: url, atLeast: .none)?.bytes() == image(index))
        }
        #expect(folder.contents().filter { $0.hasPrefix("old") } == before)
        #expect(try await work.run(source, list: list) == ImageImport.Tally(present: 100))
    }

    private func write(_ lines: [String]) -> String {
        folder.write(Array(lines.map { $0 + "\n" }.joined().utf8), to: "urls.txt")
        return folder.path("urls.txt")
    }

    @Test("A list with digests is held to: other bytes are refused, also in place of what the cache has")
    func digests() async throws {
        for index in 0..<3 { folder.write(image(index), to: "0000\(index + 1).png") }
        let digests = [image(0), image(7), image(2)].map { SHA256.hash($0).hex }
        let urls = (0..<3).map { "http://h/\($0)" }
        let list = try URLList(path: write(zip(urls, digests).map { "\($0)\t\($1)" }))
        let disk = try DiskCache(directory: folder.path("cache"))
        // Other bytes than the list says: the file takes their place.
        _ = try disk.images.storeVerified(image(9), forKey: urls[2], level: .decode)
        let refused = Locked<[String]>([])
        let work = ImageImport(into: disk, rule: .url, level: .decode, most: 1 << 20) { name, _ in
            refused.withLock { $0.append(name) }
        }
        let tally = try await work.run(.numbered(try NumberedFolder(path: folder.path)), list: list)
        #expect(tally == ImageImport.Tally(stored: 2, refused: 1))
        #expect(refused.withLock { $0 } == ["00002.png"])
        #expect(try disk.find(forKey: urls[1], atLeast: .none)?.bytes() == nil)
        #expect(try disk.find(forKey: urls[2], atLeast: .none)?.bytes() == image(2))
    }

    @Test("An image over a limit is refused, and the others are imported")
    func limits() async throws {
        folder.write(image(0), to: "00001.png")
        folder.write(GeneratedImage.png(seed: 1, width: 8, height: 8), to: "00002.png")
        folder.write(image(2), to: "00003.png")
        let list = try URLList(path: write((0..<3).map { "http://h/\($0)" }))
        var limits = ImageCoder.Limits()
        limits.maxPixels = 16
        let refused = Locked<[String]>([])
        let work = ImageImport(
            into: try DiskCache(directory: folder.path("cache")), rule: .url, level: .decode, most: 1 << 20,
            coder: ImageCoder(limits: limits)
        ) { name, reason in refused.withLock { $0.append("\(name): \(reason)") } }
        let tally = try await work.run(.numbered(try NumberedFolder(path: folder.path)), list: list)
        #expect(tally == ImageImport.Tally(stored: 2, refused: 1))
        #expect(refused.withLock { $0.count == 1 && $0[0].hasPrefix("00002.png: ") }, "\(refused.withLock { $0 })")
    }
}
