import TestSupport
import Testing

@testable import Prefetch

@Suite("Reading a list", .timeLimit(.minutes(5)))
struct URLListTests {
    private let folder = TemporaryDirectory()

    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var bytes: [UInt8]
        /// Line and text; `!` in front of what is no URL.
        var entries: [String]

        init(_ name: String, _ text: String, _ entries: [String]) {
            self.init(name, Array(text.utf8), entries)
        }

        init(_ name: String, _ bytes: [UInt8], _ entries: [String]) {
            (testDescription, self.bytes, self.entries) = (name, bytes, entries)
        }
    }

    static let good = [
        Case("one a line", "http://a/1\nhttp://a/2\n", ["1 http://a/1", "2 http://a/2"]),
        Case("no newline at the end", "http://a/1\nhttp://a/2", ["1 http://a/1", "2 http://a/2"]),
        Case("CR LF", "http://a/1\r\n\r\nhttp://a/2\r\n", ["1 http://a/1", "3 http://a/2"]),
        Case(
            "byte order mark", [0xEF, 0xBB, 0xBF] + Array("http://a/1\nhttp://a/2".utf8),
            ["1 http://a/1", "2 http://a/2"]),
        Case("blanks around", "  http://a/1 \t\n\thttp://a/b c\n", ["1 http://a/1", "2 http://a/b c"]),
        Case("blank lines and comments", "\n# a comment\n  #too\n\t \nhttp://a/1\n", ["5 http://a/1"]),
        Case(
            "a byte order mark before a comment", [0xEF, 0xBB, 0xBF] + Array("#x\nhttp://a/1".utf8), ["2 http://a/1"]),
        Case(
            "other schemes", "ftp://a/1\nHTTPS://A/\na+b-c.1://h\n", ["1 ftp://a/1", "2 HTTPS://A/", "3 a+b-c.1://h"]),
        Case(
            "lines that are no URL", "http://a/1\n/a/b.jpg\nexample.org\nmailto:x@y\n://x\nht tp://x\n",
            ["1 http://a/1", "!2 /a/b.jpg", "!3 example.org", "!4 mailto:x@y", "!5 ://x", "!6 ht tp://x"]),
        Case("NUL", "http://a/1\nhttp://a/\u{0}x\n", ["1 http://a/1", "!2 http://a/\\x00x"]),
        Case("a TAB inside", "http://a/1\nhttp://a/\tb\n", ["1 http://a/1", "!2 http://a/\\x09b"]),
        Case(
            "no UTF-8", Array("http://a/1\nhttp://a/".utf8) + [0xFF, 0x0A], ["1 http://a/1", "2 http://a/%FF"]),
        Case(
            "Latin-1 and Shift-JIS",
            Array("http://a/caf".utf8) + [0xE9, 0x0A] + Array("http://a/".utf8)
                + [0x89, 0xE6, 0x91, 0x9C] + Array(".jpg\ncaf".utf8) + [0xE9],
            ["1 http://a/caf%E9", "2 http://a/%89%E6%91%9C.jpg", "!3 caf\\xe9"]),
        Case("UTF-8", "http://a/ä\n", ["1 http://a/ä"]),
        Case(
            "the longest line", "http://a/\(String(repeating: "x", count: 65_527))\n",
            ["1 http://a/\(String(repeating: "x", count: 65_527))"]),
        Case(
            "a line too long", "http://a/1\nhttp://a/\(String(repeating: "x", count: 65_528))\nhttp://a/3",
            ["1 http://a/1", "!2 http://a/\(String(repeating: "x", count: 191))…", "3 http://a/3"]),
        Case(
            "lines of a MiB",
            "http://a/1\n\(String(repeating: "y", count: 1 << 20))\n\(String(repeating: "z", count: 1 << 20))",
            ["1 http://a/1", "!2 \(String(repeating: "y", count: 200))…", "!3 \(String(repeating: "z", count: 200))…"]),
        Case("empty", "", []), Case("blank", "\n\r\n \t\n", []), Case("comments only", "#\n# x", []),
    ]

    @Test("A list is its lines, however they are written", arguments: good)
    func lists(_ example: Case) async throws {
        folder.write(example.bytes, to: "list.txt")
        let list = try URLList(path: folder.path("list.txt"))
        var found: [String] = []
        try await list.forEach { entry async throws(PrefetchError) in
            found.append("\(entry.isInvalid ? "!" : "")\(entry.line) \(entry.url)")
            return true
        }
        #expect(found == example.entries)
        #expect(list.total == example.entries.count)
    }

    @Test(
        "A line that only lacks its scheme is answered with the URL, any other with what is wrong",
        arguments: [
            ("example.com/a.jpg", "https://example.com/a.jpg"), ("//example.com/a?b#c", "https://example.com/a?b#c"),
            ("localhost:8080/a.jpg", "https://localhost:8080/a.jpg"), ("a.example?x=1", "https://a.example?x=1"),
            ("example.com", nil), ("a.jpg", nil), ("images/a.jpg", nil), ("/a/b.jpg", nil), ("./a.b/c", nil),
            ("../a.b/c", nil), ("C:/a.jpg", nil), ("http:/example.com/a.jpg", nil), ("mailto:x@example.com/", nil),
            ("user:secret@example.com/a.jpg", nil), ("example.com/a b.jpg", nil), ("example.com/\\x09b", nil),
            ("a..b/c", nil), ("example.com:x/a.jpg", nil), ("http//example.com/a.jpg", nil), ("", nil),
            ("example.com/" + String(repeating: "x", count: 200), nil),
        ] as [(String, String?)])
    func scheme(text: String, url: String?) {
        let otherwise = "the line is not a URL: it begins with neither http:// nor https://"
        #expect(URLLines.objection(to: text) == url.map { "no scheme: did you mean \($0)?" } ?? otherwise)
        #expect(URLLines.objection(to: "ht tp://\(text)") == "the line is not a URL")
        #expect(URLLines.objection(to: "http://\(text)…") == "the URL is longer than 64 KiB")
        #expect(URLLines.objection(to: "{\(text)") == "the line is not a JSON object with a URL")
    }

    @Test("Lines stay whole wherever the buffer ends", arguments: [1, 7, 100, 4093, 65_000])
    func buffers(length: Int) async throws {
        let count = max(50, 600_000 / (length + 12))
        let urls = (0..<count).map { "http://a/\($0)/" + String(repeating: "x", count: length + $0 % 3) }
        folder.write(Array(urls.joined(separator: "\n").utf8), to: "list.txt")
        let list = try URLList(path: folder.path("list.txt"))
        var found: [String] = []
        try await list.forEach(from: 3) { entry async throws(PrefetchError) in
            found.append(entry.url)
            return found.count < count - 4
        }
        #expect(found == Array(urls[3..<(count - 1)]))
        #expect(list.total == count)
    }

    @Test("A row of JSON may have 16 MiB; a longer line is refused with its number, and takes no more memory")
    func longLines() async throws {
        let url = #"{"url":"http://a/1","text":""#
        let row = url + String(repeating: "w", count: LineReader.longest - url.utf8.count - 2) + "\"}"
        folder.write(Array("\(row)\r\nhttp://a/2\n".utf8), to: "list.txt")
        let list = try URLList(path: folder.path("list.txt"))
        var urls: [String] = []
        try await list.forEach { entry async throws(PrefetchError) in
            urls.append(entry.url)
            return !entry.isInvalid
        }
        #expect(urls == ["http://a/1", "http://a/2"])
        for end in ["", "\nhttp://a/3\n"] {
            folder.write(Array("http://a/1\n\(row) \t\(end)".utf8), to: "list.txt")
            let error = #expect(throws: PrefetchError.self) { try URLList(path: folder.path("list.txt")) }
            #expect(error?.kind == .unreadableList)
            #expect(error?.message == "line 2 of \(folder.path("list.txt")) is longer than 16 MiB")
        }
    }

    @Test("Its hash is the SHA-256 of the file, its stem what a batch id may have")
    func hashAndStem() throws {
        folder.write(Array("http://a/1\n".utf8), to: "My list (2).v1.txt")
        let list = try URLList(path: folder.path("My list (2).v1.txt"))
        // printf 'http://a/1\n' | sha256sum
        #expect(list.hash == "5366ebb057538acb332050222fe5d095026d653b82c0d327441cb088229364dd")
        #expect(list.stem == "My-list--2-")
        #expect(PrefetchQueue.isValidBatchID(list.stem + "-12345678"))
    }

    static let wrong: [(String, [UInt8], String, String)] = [
        ("parquet", Array("PAR1\u{1}\u{2}abc\n".utf8), "a Parquet file", "give its path"),
        ("gzip", [0x1F, 0x8B, 8, 0, 1], "gzip data", "zcat"),
        ("zstd", [0x28, 0xB5, 0x2F, 0xFD, 1], "zstd data", "zstdcat"),
        ("xz", [0xFD, 0x37, 0x7A, 0x58, 0x5A, 0], "xz data", "xzcat"),
        ("utf16", [0xFF, 0xFE, 0x68, 0, 0x74, 0], "UTF-16 text", "iconv"),
        ("html", Array("<!DOCTYPE html><p>x".utf8), "an HTML page", "links"),
        ("xml", Array("<?xml version=\"1.0\"?>\n<urlset>".utf8), "XML", "<loc>"),
        ("array", Array("[\"http://a/1\"]".utf8), "a JSON array", "jq -r '.[]'"),
        ("json", Array("{\"page\": \"http://a/1\", \"at\": 1}\n".utf8), "JSON", "jq -r '.page'"),
        (
            "csv", Array("id,url,caption\n1,http://a/1,x\n".utf8), "CSV with the columns id, url, caption",
            "--input-format csv"
        ),
        ("tsv", Array("url\tcaption\nhttp://a/1\tx\n".utf8), "TAB-separated values", "--input-format tsv"),
        ("prose", Array("hello\nworld\n".utf8), "text without URLs", "https://example.org/a.jpg"),
    ]

    @Test("A file of another kind is refused by name, with what to do", arguments: wrong)
    func wrongKinds(name: String, bytes: [UInt8], what: String, hint: String) {
        folder.write(bytes, to: name)
        #expect {
            try URLList(path: folder.path(name))
        } throws: { error in
            let error = error as? PrefetchError
            return error?.kind == .unreadableList && error?.message.contains(what) == true
                && error?.hint.contains(hint) == true
        }
    }

    @Test("A missing file and a folder are told apart")
    func unreadable() {
        #expect { try URLList(path: folder.path("none")) } throws: { ($0 as? PrefetchError)?.kind == .notFound }
        #expect { try URLList(path: folder.path) } throws: { ($0 as? PrefetchError)?.kind == .unreadableList }
    }
}
