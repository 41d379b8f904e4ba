import Glibc
import TestSupport
import Testing

@testable import Prefetch

@Suite("Copies of lists")
struct ListCopyTests {
    private let folder = TemporaryDirectory()
    private let text = (0..<5000).map { "http://example.org/\($0).png\n" }.joined()

    private func list() throws -> ListStream {
        folder.write(Array(text.utf8), to: "list.txt")
        mkdir(folder.path("lists"), 0o700)
        let list = try ListStream([folder.path("list.txt")])
        try list.keep(in: folder.path("lists"))
        return list
    }

    /// Reads a list as a feeder does; returns its copy.
    private func read(_ list: ListStream, lines: Int = .max) async throws -> ListCopy? {
        try await list.forEach(copies: true) { entry, _ async throws(PrefetchError) in entry.line < lines }
        return ListCopy(of: list.list.hash, in: folder.path("lists"))
    }

    @Test("A list that is fed to its end has a copy with the same bytes, a quarter as large, private to this user")
    func copies() async throws {
        let list = try list()
        let copy = try #require(try await read(list))
        var status = stat()
        #expect(stat(copy.path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(Int(status.st_size) * 4 < text.utf8.count)
        let unpacked = try #require(copy.unpacked(text.utf8.count))
        #expect(readFile(unpacked) == Array(text.utf8))
        #expect(try URLList(path: unpacked).hash == list.list.hash)
        #expect(folder.contents().filter { $0.hasPrefix("lists/") }.count == 3)
        // A second batch of the same list has the same copy.
        #expect(try await read(self.list()) == copy)
        #expect(folder.contents().filter { $0.hasPrefix("lists/") }.count == 3)
    }

    @Test("What was not read to its end leaves nothing, and a damaged copy is none")
    func halves() async throws {
        let list = try list()
        let copy = try #require(try await read(list, lines: 100))
        #expect(folder.contents() == ["list.txt", "lists/"])
        #expect(copy.unpacked(text.utf8.count) == nil)
        for bytes in [[UInt8](repeating: 7, count: 99), [0x1F, 0x8B, 8, 0, 0]] {
            folder.write(bytes, to: "lists/\(list.list.hash).list.zst")
            #expect(copy.unpacked(text.utf8.count) == nil)
        }
        #expect(ListCopy(of: "../passwd", in: "/etc") == nil && ListCopy(of: list.list.hash, in: "") == nil)
    }

    @Test("A copy that others may have written, or that is a link, is none")
    func foreign() async throws {
        let list = try list()
        let copy = try #require(try await read(list))
        chmod(folder.path("lists"), 0o777)
        #expect(copy.unpacked(text.utf8.count) == nil)
        chmod(folder.path("lists"), 0o700)
        rename(copy.path, folder.path("other"))
        symlink(folder.path("other"), copy.path)
        #expect(copy.unpacked(text.utf8.count) == nil)
        #expect(folder.contents().filter { $0.hasSuffix(".txt") } == ["list.txt"])
    }

    @Test("A list that is in the folder itself is its own copy")
    func own() async throws {
        folder.write(Array(text.utf8), to: "list.txt")
        let list = try ListStream([folder.path("list.txt")])
        try list.keep(in: folder.path)
        #expect(list.list.copies == nil)
        _ = try await read(list)
        #expect(folder.contents() == ["list.txt"])
    }

    @Test("Copies that nobody has used for 90 days go when another one is made; anything else in the folder stays")
    func old() async throws {
        let list = try list()
        let old = String(repeating: "a", count: 64)
        for name in ["\(old).list.zst", "\(old).list.txt", "\(old).list.zst.123", "mine.list"] {
            folder.write([1], to: "lists/\(name)")
            let time = timespec(tv_sec: time(nil) - 91 * 86_400, tv_nsec: 0)
            utimensat(AT_FDCWD, folder.path("lists/\(name)"), [time, time], 0)
        }
        _ = try await read(list)
        #expect(folder.contents() == ["list.txt", "lists/", "lists/\(list.list.hash).list.zst", "lists/mine.list"])
    }
}
