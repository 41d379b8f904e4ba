import Glibc
import TestSupport
import Testing

@testable import WebImage

@Suite("Listing a cache", .timeLimit(.minutes(5)))
struct ImageListingTests {
    @Test(
        "Every image comes once with its record; what cannot be read is named, and nothing is touched",
        arguments: CacheMode.allCases)
    func everything(mode: CacheMode) throws {
        let directory = TemporaryDirectory()
        let cache = try DiskCache(directory: directory.path, configuration: mode.configuration())
        for index in 0..<40 {
            let record = CacheRecord(
                level: .structure, format: .png, width: index, height: 1, length: 5000, digest: nil, storedAt: index)
            try cache.images.store(
                ImageBody([UInt8](repeating: 7, count: 5000)), for: CacheKey("\(index)"), record: record)
        }
        let (bare, link) = (directory.path(CacheKey("bare").path), directory.path(CacheKey("link").path))
        for name in ["bare", "link"] {
            try cache.images.store(ImageBody([1]), for: CacheKey(name), record: record([1]))
            unlink(directory.path(CacheKey(name).path))
            unlink(directory.path(CacheKey(name).path) + ".m")
        }
        directory.write(Array("GIF89a\u{1}\0\u{1}\0\0\0\0".utf8), to: CacheKey("bare").path)
        #expect(access(bare, R_OK) == 0 && symlink("target", link) == 0)
        directory.write([1], to: "v1/stray")
        directory.write([1], to: "\(CacheKey("bare").leaf)/.t-1-1")
        let before = directory.contents()
        var widths: [Int] = []
        var paths: [String] = []
        var unread: [String] = []
        try cache.images.forEach(unreadable: { path, reason in unread.append("\(path) \(reason.isEmpty)") }) { entry in
            paths.append(entry.path)
            #expect(entry.allocatedSize.isMultiple(of: 512))
            guard let record = entry.record else {
                #expect(entry.format == .gif && entry.key == CacheKey("bare"))
                return true
            }
            widths.append(record.width)
            #expect(entry.size == 5000 && entry.allocatedSize > 0 && entry.key == CacheKey("\(record.width)"))
            return true
        }
        #expect(widths.sorted() == Array(0..<40) && paths.count == 41)
        #expect(paths == paths.sorted())
        #expect(unread == ["\(link) false"])
        #expect(directory.contents() == before)
        var seen = 0
        try cache.images.forEach(unreadable: { _, _ in }) { _ in
            seen += 1
            return seen < 3
        }
        #expect(seen == 3)
    }
}
