import Glibc
import TestSupport
import Testing

@testable import Prefetch

@Suite("Copies of lists")
struct ListCopyTests {
    private let folder = TemporaryDirectory()
    private let text = (0..<5000).map { "http://example.org/\($0).png\n" }.joined()

    private func list() throws -> URLList {
        folder.write(Array(text.utf8), to: "list.txt")
        mkdir(folder.path("lists"), 0o700)
        var list = try URLList(path: folder.path("list.txt"))
        list.keepCopy(in: folder.path("lists"))
        return list
    }

    @Test("A list that is fed to its end has a copy with the same bytes, a quarter as large, private to this user")
    func copies() async throws {
        let list = try list()
        let copy = try #require(list.copy)
        try await list.forEach(copy: copy) { entry async throws(PrefetchError) in true }
        var status = stat()
        #expect(stat(copy.path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(Int(status.st_size) * 4 < text.utf8.count)
        let unpacked = try #require(ListCopy(path: copy.path)?.unpacked())
        #expect(readFile(unpacked) == Array(text.utf8))
        #expect(try URLList(path: unpacked).hash == list.hash)
        #expect(folder.contents().filter { $0.hasPrefix("lists/") }.count == 3)
        // A second batch of the same list has the same copy.
        #expect(ListCopy.Writer(copy) == nil)
    }

    @Test("What was not read to its end leaves nothing, and a damaged copy is none")
    func halves() async throws {
        let list = try list()
        let copy = try #require(list.copy)
        try await list.forEach(copy: copy) { entry async throws(PrefetchError) in entry.line < 100 }
        #expect(folder.contents() == ["list.txt", "lists/"])
        #expect(copy.unpacked() == nil)
        for bytes in [[UInt8](repeating: 7, count: 99), [0x1F, 0x8B, 8, 0, 0]] {
            folder.write(bytes, to: "lists/\(list.hash).list.gz")
            if let file = copy.unpacked() { #expect((try? URLList(path: file))?.hash != list.hash) }
            unlink(folder.path("lists/\(list.hash).list.txt"))
        }
        #expect(ListCopy(path: "/etc/passwd") == nil && ListCopy(path: folder.path("lists/x.list.gz")) == nil)
    }

    @Test("A copy that others may have written, or that is a link, is none")
    func foreign() async throws {
        let list = try list()
        let copy = try #require(list.copy)
        try await list.forEach(copy: copy) { entry async throws(PrefetchError) in true }
        chmod(folder.path("lists"), 0o777)
        #expect(copy.unpacked() == nil)
        chmod(folder.path("lists"), 0o700)
        rename(copy.path, folder.path("other"))
        symlink(folder.path("other"), copy.path)
        #expect(copy.unpacked() == nil)
        #expect(folder.contents().filter { $0.hasSuffix(".txt") } == ["list.txt"])
    }

    @Test("A list that is in the folder itself is its own copy")
    func own() throws {
        folder.write(Array(text.utf8), to: "list.txt")
        var list = try URLList(path: folder.path("list.txt"))
        list.keepCopy(in: folder.path)
        #expect(list.copy == nil)
    }

    @Test("Copies that nobody has used for 90 days go when another one is made; anything else in the folder stays")
    func old() async throws {
        let list = try list()
        let old = String(repeating: "a", count: 64)
        for name in ["\(old).list.gz", "\(old).list.txt", "\(old).list.gz.123", "mine.list"] {
            folder.write([1], to: "lists/\(name)")
            let time = timespec(tv_sec: time(nil) - 91 * 86_400, tv_nsec: 0)
            utimensat(AT_FDCWD, folder.path("lists/\(name)"), [time, time], 0)
        }
        try await list.forEach(copy: list.copy) { entry async throws(PrefetchError) in true }
        #expect(folder.contents() == ["list.txt", "lists/", "lists/\(list.hash).list.gz", "lists/mine.list"])
    }
}
