import Foundation
import Glibc
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("Lists of other forms", .timeLimit(.minutes(5)))
struct ListImportTests {
    private let folder = TemporaryDirectory()

    private func options(_ set: (inout ListInput.Options) -> Void = { _ in }) -> ListInput.Options {
        var options = ListInput.Options()
        set(&options)
        return options
    }

    /// The list that a file becomes; nil where it is one.
    private func list(_ text: String, _ name: String, _ options: ListInput.Options = .init()) throws -> String? {
        folder.write(Array(text.utf8), to: name)
        return try list(name, options)
    }

    private func list(_ name: String, _ options: ListInput.Options = .init()) throws -> String? {
        var (warnings, bytes): ([String], [UInt8]) = ([], [])
        return try read(name, options, &warnings, &bytes) ? nil : String(decoding: bytes, as: UTF8.self)
    }

    /// The lines of a file, and what is said of them; returns whether it is a list as it is.
    private func read(
        _ name: String, _ options: ListInput.Options = .init(), _ warnings: inout [String], _ bytes: inout [UInt8]
    ) throws -> Bool {
        let said = Locked<[String]>([])
        let input = try ListInput([folder.path(name)], options: options) { notice in
            if case .warning(let text, _) = notice { said.withLock { $0.append(text) } }
        }
        var hasEnded = false
        while !hasEnded {
            switch try input.next(waitLimit: -1) {
            case .lines(let lines): bytes += lines
            case .nothing: continue
            case .end: hasEnded = true
            }
        }
        warnings = said.withLock { $0 }
        return input.isPlain
    }

    private func gzip(_ name: String) async throws {
        let gzip = try await ChildProcess("/bin/gzip", ["-n", folder.path(name)])
        #expect(await gzip.wait() == .exited(0))
    }

    @Test("Lines are left as they are, and unpacked where they are packed, whatever the name says")
    func packed() async throws {
        let text = "https://a.example/1.jpg\n# x\n\n{\"url\":\"https://a.example/2.jpg\"}\nhttps://a.example/a,b.jpg\n"
        #expect(try list(text, "urls.txt") == nil)
        #expect(try list("", "empty.txt") == nil)
        try await gzip("urls.txt")
        #expect(try list("urls.txt.gz") == text)
        rename(folder.path("urls.txt.gz"), folder.path("plain.txt"))
        #expect(try list("plain.txt") == text)
        // Two packed files behind each other are one (RFC 1952).
        let twice = (folder.read("plain.txt") ?? []) + (folder.read("plain.txt") ?? [])
        folder.write(twice, to: "twice.gz")
        #expect(try list("twice.gz") == text + text)
    }

    @Test(
        "zstd is unpacked as gzip is: frames behind each other, much out of little, and nothing that was cut or damaged"
    )
    func zstd() throws {
        let text = "https://a.example/1.jpg\n# x\n\n{\"url\":\"https://a.example/2.jpg\"}\nhttps://a.example/a,b.jpg\n"
        // zstd -19 of it, with a checksum; and of 100,000 lines, without one.
        let packed = try #require(
            Data(
                base64Encoded:
                    "KLUv/QRo3QEAEoMLEaA9kM035/OX/72zIuEDB3cUil6xEa5zyZZdDa5UjSAoesWjz3rm8bB3F/fvpQMAPX2AdYs89QR/KtCQ"))
        let many = try #require(
            Data(
                base64Encoded:
                    "KLUv/QBoBAEAwGh0dHBzOi8vYS5leGFtcGxlLzEuanBnCgEAlP9vPsdEAAAAAQD9/5tPIEQAAAABAP3/OQACRAAAAAEA/f85AAJE"
                    + "AAAAAQD9/zkAAkQAAAABAP3/OQACRAAAAAEA/f85AAJEAAAAAQD9/zkAAkQAAAABAP3/OQACRAAAAAEA/f85AAJEAAAAAQD9/zkA"
                    + "AkQAAAABAP3/OQACRAAAAAEA/f85AAJEAAAAAQD9/zkAAkQAAAABAP3/OQACRAAAAAEA/f85AAJEAAAAAQD9/zkAAkQAAAABAP3/"
                    + "OQACRQAAAAEA/R4dAAE="))
        folder.write(Array(packed), to: "plain.txt")
        #expect(try list("plain.txt") == text)
        // A skippable frame between two.
        folder.write(Array(packed) + [0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3] + Array(packed), to: "twice.zst")
        #expect(try list("twice.zst") == text + text)
        folder.write(Array(many), to: "many.zst")
        #expect(try list("many.zst") == String(repeating: "https://a.example/1.jpg\n", count: 100_000))
        for length in 4..<packed.count {
            folder.write(Array(packed.prefix(length)), to: "cut.zst")
            let error = #expect(throws: PrefetchError.self, "\(length)") { try list("cut.zst") }
            #expect(error?.kind == .unreadableList && error?.hint.contains("zstd -t") == true, "\(length)")
        }
        var bytes = Array(packed)
        bytes[30] ^= 0x10
        folder.write(bytes, to: "bad.zst")
        #expect(throws: PrefetchError.self) { try list("bad.zst") }
        // A window of 2 GiB is more than zstd(1) takes.
        folder.write([0x28, 0xB5, 0x2F, 0xFD, 0, 0xA8] + [UInt8](repeating: 0, count: 64), to: "window.zst")
        #expect(throws: PrefetchError.self) { try list("window.zst") }
    }

    @Test(
        "Names of columns are their bytes, and of two kept ones that a manifest cannot tell apart none is lost silently"
    )
    func equivalentNames() throws {
        let rows = "url,caf\u{E9},cafe\u{301}\nhttps://a.example/1.jpg,one,two\n"
        let composed = try list(rows, "t.csv", options { $0.keepColumns = ["caf\u{E9}"] })
        #expect(composed?.contains("\"one\"") == true && composed?.contains("\"two\"") == false)
        let decomposed = try list(rows, "t.csv", options { $0.keepColumns = ["cafe\u{301}"] })
        #expect(decomposed?.contains("\"two\"") == true && decomposed?.contains("\"one\"") == false)
        for both in [["caf\u{E9}", "cafe\u{301}"], ["2", "3"]] {
            #expect(throws: PrefetchError.self) { try list(rows, "t.csv", options { $0.keepColumns = both }) }
        }
        #expect(throws: PrefetchError.self) {
            try list("url,a,a\nhttps://a.example/1.jpg,1,2\n", "t.csv", options { $0.keepColumns = ["2", "3"] })
        }
    }

    @Test("A packed list that was cut or damaged is refused, at any byte")
    func damaged() async throws {
        folder.write(Array((0..<200).map { "https://a.example/\($0 * 7919 % 1000).jpg\n" }.joined().utf8), to: "l")
        try await gzip("l")
        let whole = try #require(folder.read("l.gz"))
        for length in stride(from: 3, to: whole.count, by: 29) {
            folder.write(Array(whole.prefix(length)), to: "cut.gz")
            let error = #expect(throws: PrefetchError.self, "\(length) of \(whole.count)") { try list("cut.gz") }
            #expect(error?.kind == .unreadableList)
        }
        var bytes = whole
        bytes[bytes.count / 2] ^= 0x10
        folder.write(bytes, to: "bad.gz")
        #expect(throws: PrefetchError.self) { try list("bad.gz") }
    }

    @Test("A table becomes lines under the same numbers, with the columns that are kept")
    func table() throws {
        let text =
            "id,URL,title\n1,https://a.example/1.jpg,one\n2,\"https://a.example/2,b.jpg\",\"two\nlines\"\n3,,\n4\n5,no url,x\n"
        #expect(
            try list(text, "t.csv")
                == "\nhttps://a.example/1.jpg\nhttps://a.example/2,b.jpg\n\n{\"url\":\"\"}\n{\"url\":\"\"}\n{\"url\":\"no url\"}\n"
        )
        let kept = try list(text, "t.csv", options { $0.keepColumns = ["title", "1"] })
        let lines = try #require(kept).split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines[1] == #"{"columns":{"id":"1","title":"one"},"url":"https://a.example/1.jpg"}"#)
        #expect(lines[2] == #"{"columns":{"id":"2","title":"two\nlines"},"url":"https://a.example/2,b.jpg"}"#)
        #expect(lines[3].isEmpty)
        let digest = String(repeating: "ab", count: 32)
        let sums = try list(
            "https://a.example/1.jpg\t\(digest)\nhttps://a.example/2.jpg\n", "s.tsv", options { $0.sha256Column = "2" })
        #expect(sums == "{\"sha256\":\"\(digest)\",\"url\":\"https://a.example/1.jpg\"}\nhttps://a.example/2.jpg\n")
        #expect(try list(text, "again.csv") == list(text, "t.csv"))
    }

    @Test("Columns that are not there are named with those that are")
    func columns() throws {
        let text = "id,file\n1,a.jpg\n"
        for (set, words) in [
            (options(), "name it: --url-column; the first row has id, file"),
            (options { $0.urlColumn = "img" }, "the first row has id, file"),
            (options { $0.urlColumn = "3" }, "the first row has id, file"),
        ] {
            let error = #expect(throws: PrefetchError.self) { try list(text, "t.csv", set) }
            #expect(error?.hint.contains(words) == true, "\(error?.hint ?? "")")
        }
        #expect(try list(text, "t.csv", options { $0.urlColumn = "File" }) == "\n{\"url\":\"a.jpg\"}\n")
        #expect(try list(text, "t.csv", options { $0.urlColumn = "2" }) == "\n{\"url\":\"a.jpg\"}\n")
        let error = #expect(throws: PrefetchError.self) {
            try list(
                "https://a.example/1.jpg\n", "t.txt",
                options {
                    $0.format = .plain; $0.keepColumns = ["x"]
                })
        }
        #expect(error?.kind == .configuration)
    }

    @Test("A sitemap gives its images, or its pages where it has none; an index those of the files beside it")
    func sitemap() async throws {
        let images =
            "<urlset><url><loc>https://a/p</loc><image><loc>https://a/1.jpg?a&amp;b</loc></image></url></urlset>"
        let pages = "<?xml version='1.0'?><urlset><url><loc>https://a/2.png</loc></url></urlset>"
        #expect(try list(images, "i.xml") == "https://a/1.jpg?a&b\n")
        #expect(try list(pages, "p.txt") == "https://a/2.png\n")
        try await gzip("p.txt")
        let index =
            "<sitemapindex><sitemap><loc>https://a/i.xml?v=1</loc></sitemap><sitemap><loc>https://a/s/p.txt.gz</loc></sitemap></sitemapindex>"
        #expect(try list(index, "index.xml") == "https://a/1.jpg?a&b\nhttps://a/2.png\n")
        // Two times the same one is no mistake.
        let twice =
            "<sitemapindex><sitemap><loc>https://a/i.xml</loc></sitemap><sitemap><loc>https://a/i.xml</loc></sitemap></sitemapindex>"
        #expect(try list(twice, "twice.xml") == "https://a/1.jpg?a&b\nhttps://a/1.jpg?a&b\n")
    }

    @Test("Where a sitemap of an index is missing or is none, the line that names it is told, and what to do")
    func brokenIndex() throws {
        _ = try list("<urlset><url><loc>https://a/2.png</loc></url></urlset>", "p.xml")
        _ = #expect(throws: PrefetchError.self) {
            try list("<urlset>\n<url>\n<loc>https://a/</url></urlset>", "bad.xml")
        }
        _ = #expect(throws: PrefetchError.self) {
            try list("<sitemapindex><sitemap><loc>https://a/x.xml</loc></sitemap></sitemapindex>", "inner.xml")
        }
        let here = folder.path("")
        for (second, message, hint) in [
            (
                "https://a/m/no.xml?v=1",
                "line 4 of \(here)index.xml names https://a/m/no.xml?v=1, and there is no \(here)no.xml", "fetch all"
            ),
            (
                "https://a/../..", "line 4 of \(here)index.xml names https://a/../.., which is the address of no file",
                "by itself"
            ),
            (
                "https://p.xml", "line 4 of \(here)index.xml names https://p.xml, which is the address of no file",
                "by itself"
            ),
            (
                "https://a/maps/", "line 4 of \(here)index.xml names https://a/maps/, which is the address of no file",
                "by itself"
            ),
            (
                "https://a/inner.xml", "line 4 of \(here)index.xml names \(here)inner.xml, which is an index too",
                "by itself"
            ),
            (
                "https://a/b/p.xml",
                "lines 2 and 4 of \(here)index.xml name two sitemaps, and both would be \(here)p.xml", "two names"
            ),
            ("https://a/bad.xml", "line 3 of \(here)bad.xml: </url> closes <loc>", "nothing was queued"),
        ] {
            let index =
                "<sitemapindex>\n<sitemap><loc>https://a/p.xml</loc></sitemap>\n<sitemap>\n<loc>\(second)</loc></sitemap></sitemapindex>"
            let error = #expect(throws: PrefetchError.self) { try list(index, "index.xml") }
            #expect(error?.kind == .unreadableList && error?.message == message, "\(error?.message ?? "")")
            #expect(error?.hint.contains(hint) == true, "\(error?.hint ?? "")")
        }
        let fifo = folder.path("index.fifo")
        #expect(mkfifo(fifo, 0o600) == 0)
        let writer = open(fifo, O_RDWR | O_CLOEXEC)
        let text = "<sitemapindex>\n<sitemap><loc>https://a/p.xml</loc></sitemap></sitemapindex>"
        #expect(write(writer, text, text.utf8.count) == text.utf8.count)
        let reader = open(fifo, O_RDONLY | O_CLOEXEC)
        close(writer)
        defer { close(reader) }
        let error = #expect(throws: PrefetchError.self) {
            try ListInput(["/dev/fd/\(reader)"], options: options()) { _ in }
        }
        #expect(
            error?.message
                == "line 2 of /dev/fd/\(reader) names https://a/p.xml, a sitemap, and there is nothing beside /dev/fd/\(reader)"
        )
    }

    @Test("What an input becomes reads back as its entries: their URLs, digests and columns")
    func entries() async throws {
        let urls = ["https://a/1", "https://a/ü", "#x://a", "{x", " https://a/b ", "https://a/\u{7F}", ""]
        let rows = urls.map { "\"\($0)\",v\n" }.joined()
        folder.write(Array("url,k\n\(rows)".utf8), to: "t.csv")
        let list = try ListStream([folder.path("t.csv")], options: options { $0.keepColumns = ["k"] })
        try list.keep(in: folder.path(""))
        var entries: [PrefetchJob.Entry] = []
        try await BatchEntries(list).forEach { entry in
            entries.append(entry)
            return true
        }
        #expect(entries.map(\.line) == Array(2...8))
        #expect(entries.map(\.isInvalid) == [false, false, true, true, false, true, true])
        #expect(entries[4].url == "https://a/b")
        #expect(entries.allSatisfy { $0.columns == ["k": .text("v")] })
        #expect(entries[1].url == "https://a/ü")
    }

    @Test("Cells are read without blanks and quotes around them; what is kept is as it was")
    func blanks() throws {
        let text = "id, url , title\n1, http://h/a.jpg , one \n2, \"http://h/b.jpg\",\n"
        #expect(try list(text, "t.csv") == "\nhttp://h/a.jpg\nhttp://h/b.jpg\n")
        let kept = try list(text, "t.csv", options { $0.keepColumns = ["title"] })
        #expect(kept?.contains(#"{"columns":{"title":" one "},"url":"http://h/a.jpg"}"#) == true)
        folder.write(Array("url,c\nhttp://h/caf".utf8) + [0xE9] + Array(",x\n".utf8), to: "latin.csv")
        #expect(try list("latin.csv") == "\nhttp://h/caf%E9\n")
    }

    static let tables: [(name: String, text: String)] = [
        ("t.csv", "url;caption\nhttp://h/1;a\nhttp://h/2;b\n"),
        ("t.csv", "url\tcaption\nhttp://h/1\ta\nhttp://h/2\tb\n"),
        ("t.csv", "sep=;\r\nurl;caption\r\nhttp://h/1;a\r\nhttp://h/2;b\r\n"),
        ("t.tsv", "url,caption\nhttp://h/1,a\nhttp://h/2,b\n"),
        ("t.csv", "id;file\n1;http://h/1\n2;http://h/2\n"), ("t.csv", "page;n\nhttp://h/1;1\nhttp://h/2;2\n"),
        ("t.txt", "url;caption\nhttp://h/1;a\nhttp://h/2;b\n"), ("t.txt", "id\tfile\n1\thttp://h/1\n2\thttp://h/2\n"),
        ("t.txt", "n01_1\thttp://h/1\nn01_2\thttp://h/2\n"), ("t.txt", "http://h/1\ta caption\nhttp://h/2\tb\n"),
        ("t", "Image URL,caption\nhttp://h/1,a\nhttp://h/2,b\n"), ("t.txt", "1;http://h/1\n2;http://h/2\n"),
        ("t.csv", "id,photo of it,license\n1,http://h/1,cc\n2,http://h/2,cc\n"),
        ("t.csv", "id,Thumbnail300KURL\n1,http://h/1\n2,http://h/2\n"),
        ("t.csv", "id,OriginalURL,LandingURL\n1,http://h/1,http://l/1\n2,http://h/2,http://l/2\n"),
        ("t.csv", "http://h/1,a\nhttp://h/2,b;c\n"), ("t.csv", "http://h/1\nhttp://h/2\n"),
        ("t.csv", "a,b\n,\n1,x\n2,http://h/1\n3,http://h/2\n"),
    ]

    @Test(
        "A table is known by its content, and its URLs by a name or by the first column that has some",
        arguments: tables)
    func content(_ table: (name: String, text: String)) async throws {
        let text = try #require(try list(table.text, table.name))
        folder.write(Array(text.utf8), to: "out")
        var found: [String] = []
        try await URLList(path: folder.path("out")).forEach { entry in
            if !entry.isInvalid { found.append(entry.url) }
            return true
        }
        #expect(found == ["http://h/1", "http://h/2"])
    }

    @Test(
        "What is a list of lines stays one, whatever separators are in it",
        arguments: [
            "http://h/a;b.jpg\nhttp://h/c,d.jpg\n", "http://h/1\t\(String(repeating: "ab", count: 32))\t5\t-\n",
            "# a\tb\nhttp://h/1\n", "{\"url\":\"http://h/1\",\"a\":1}\n", "a, b\nhttp://h/1\nhttp://h/2\n", "x;y\n",
            "www.example.org/a,b\nhttp://h/1,2\n", "hello, world\n",
        ])
    func lines(text: String) throws {
        #expect(try list(text, "l.txt") == nil)
    }

    @Test("Rows that a quote has swallowed are warned of with its line, some of them by name")
    func swallowed() throws {
        let row = "http://h/1\t\"love\nhttp://h/2\tb\"\n"
        folder.write(Array(("url\tcaption\n" + String(repeating: row, count: 7)).utf8), to: "t.tsv")
        var (warnings, bytes): ([String], [UInt8]) = ([], [])
        _ = try read("t.tsv", .init(), &warnings, &bytes)
        #expect(warnings.count == 6)
        #expect(
            warnings.first
                == "the quoted field that begins in line 2 has 2 lines, and a URL in them; if its quote is not meant, rows are lost in it"
        )
        #expect(warnings.last == "2 more quoted fields are as long")
    }

    @Test("A column of captions is kept by itself, the likeliest one, and said to be")
    func captions() throws {
        for (names, kept) in [
            ("url,Caption,text", "Caption"), ("alt,TEXT,url", "TEXT"), ("url,title", nil), ("text,url", "text"),
        ] {
            let header = names.split(separator: ",")
            let row = header.map { $0 == "url" ? "http://h/1" : "of \($0)" }.joined(separator: ",")
            folder.write(Array("\(names)\n\(row)\n".utf8), to: "t.csv")
            let said = Locked<String?>(nil)
            let input = try ListInput([folder.path("t.csv")], options: options()) { notice in
                if case .header(let header, _) = notice { said.withLock { $0 = header.caption } }
            }
            #expect(said.withLock { $0 } == kept)
            guard case .lines(let lines) = try input.next(waitLimit: -1), let kept else { continue }
            let line = "\n{\"columns\":{\"\(kept)\":\"of \(kept)\"},\"url\":\"http://h/1\"}\n"
            #expect(String(decoding: lines, as: UTF8.self) == line)
        }
        // One that is asked for is no caption to be told of.
        folder.write(Array("url,caption\nhttp://h/1,x\n".utf8), to: "t.csv")
        _ = try ListInput([folder.path("t.csv")], options: options { $0.keepColumns = ["caption"] }) { notice in
            if case .header(let header, _) = notice { #expect(header.caption == nil) }
        }
    }
}
