import TestSupport
import Testing

@testable import Prefetch

@Suite("The beginning of a list")
struct ListHeadTests {
    private let folder = TemporaryDirectory()

    private func cut(_ text: String, _ count: Int) throws -> String? {
        folder.write(Array(text.utf8), to: "urls.txt")
        let path = try ListHead.copy(folder.path("urls.txt"), entries: count, into: folder.path, stem: "urls")
        guard let path else { return nil }
        #expect(try URLList(path: path).total == count)
        return String(decoding: folder.read(String(path.split(separator: "/").last ?? "")) ?? [], as: UTF8.self)
    }

    @Test("URLs and invalid lines count, comments and blank lines do not; line numbers stay")
    func entries() throws {
        let text = "# a comment\nhttp://h/1\n\nno url\n# another\nhttp://h/2\nhttp://h/3"
        #expect(try cut(text, 1) == "# a comment\nhttp://h/1\n\n")
        #expect(try cut(text, 2) == "# a comment\nhttp://h/1\n\nno url\n# another\n")
        #expect(try cut(text, 3) == "# a comment\nhttp://h/1\n\nno url\n# another\nhttp://h/2\n")
        // A list that is no longer stays the list it is, with its hash.
        #expect(try cut(text, 4) == nil)
        #expect(try cut(text, 5) == nil)
    }

    @Test("Lines longer than a buffer, and a head longer than one, are cut at the right byte")
    func long() throws {
        let lines = (0..<9_000).map { "http://h/\($0)?" + String(repeating: "x", count: 60) + "\n" }
        #expect(try cut(lines.joined(), 8_000) == lines.prefix(8_000).joined())
        let huge = "http://h/" + String(repeating: "x", count: 400_000) + "\n"
        #expect(try cut("http://h/1\n" + huge + "http://h/2\n", 2) == "http://h/1\n" + huge)
    }
}
