import TestSupport
import Testing

@testable import Prefetch

@Suite("Entries of a list by their index", .timeLimit(.minutes(5)))
struct EntryReaderTests {
    private let folder = TemporaryDirectory()

    /// 5,000 entries among comments, blank lines, every kind of end of line, lines that are too long, and a byte order mark.
    private func list() throws -> (path: String, entries: [PrefetchJob.Entry]) {
        var text: [UInt8] = [0xEF, 0xBB, 0xBF]
        for index in 0..<5000 {
            if index % 7 == 0 { text += Array("# comment \(index)\n".utf8) }
            if index % 11 == 0 { text += Array("\n \r\n".utf8) }
            if index % 501 == 500 {
                text += Array(repeating: UInt8(ascii: "x"), count: 60_000 + index * 60)
            } else {
                text += Array("  http://h/\(index)".utf8)
            }
            text += Array((index % 3 == 0 ? "\r\n" : "\n").utf8)
        }
        folder.write(text.dropLast(), to: "list.txt")
        var reader = try LineReader(path: folder.path("list.txt"))
        var entries: [PrefetchJob.Entry] = []
        while let line = try reader.next() {
            if let entry = URLList.entry(line, number: reader.lineNumber) { entries.append(entry) }
        }
        return (folder.path("list.txt"), entries)
    }

    @Test("Of a file that grows by whole lines, what was read before and what comes later is there, in any order")
    func grown() throws {
        let (path, entries) = try list()
        let bytes = try #require(readFile(path))
        let grown = folder.path("grown.txt")
        // The end of a line that is being written.
        let cut = try #require(bytes[..<(bytes.count / 2)].lastIndex(of: 0x0A)) + 5
        folder.write(Array(bytes[..<cut]), to: "grown.txt")
        let known = entries.count / 2 - 200
        let reader = try EntryReader(path: grown)
        #expect(try reader.entry(at: known - 1) == entries[known - 1])
        folder.write(bytes, to: "grown.txt")
        for index in Array(known..<5000) + [4_999, 0, 3_000, known] + (0..<100).map({ _ in Int.random(in: 0..<5000) }) {
            #expect(try reader.entry(at: index) == entries[index], "\(index)")
        }
    }

    @Test("Any index in any order is the entry that reading from the start gives")
    func anyOrder() throws {
        let (path, entries) = try list()
        #expect(entries.count == 5000)
        let reader = try EntryReader(path: path)
        let places = [0, 1, 4999, 1023, 1024, 1025, 2047, 500, 501, 3, 2, 4998, 3006, 3007, 0]
        let random = (0..<300).map { _ in Int.random(in: 0..<5000) }
        for index in places + random + Array(0..<5000) {
            #expect(try reader.entry(at: index) == entries[index], "\(index)")
        }
    }

    @Test("An index past the end, or a file that became shorter, is an error")
    func pastTheEnd() throws {
        folder.write(Array("http://h/0\nhttp://h/1\n".utf8), to: "short.txt")
        let reader = try EntryReader(path: folder.path("short.txt"))
        #expect(throws: PrefetchError.self) { try reader.entry(at: 2) }
        #expect(try reader.entry(at: 1).url == "http://h/1")
        // Replaced under its name: the file that was opened is read on.
        folder.write(Array("http://h/0\n".utf8), to: "other.txt")
        #expect(throws: PrefetchError.self) { try EntryReader(path: folder.path("none.txt")) }
    }
}
