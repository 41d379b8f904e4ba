import Glibc
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Lists of other forms", .timeLimit(.minutes(1)))
struct ListImportTests {
    private let folder = TemporaryDirectory()

    private func options(_ set: (inout ListImport.Options) -> Void = { _ in }) -> ListImport.Options {
        var options = ListImport.Options()
        set(&options)
        return options
    }

    /// The list that a file becomes; nil where it is one.
    private func list(_ text: String, _ name: String, _ options: ListImport.Options = .init()) throws -> String? {
        folder.write(Array(text.utf8), to: name)
        return try list(name, options)
    }

    private func list(_ name: String, _ options: ListImport.Options = .init()) throws -> String? {
        guard let found = try ListImport(path: folder.path(name), options: options) else { return nil }
        let path = try found.write(into: folder.path(""), stem: "list")
        return String(decoding: try #require(readFile(path)), as: UTF8.self)
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
        // Nothing is left of a list that could not be written.
        #expect(!folder.contents().contains { $0.hasSuffix(".list") })
    }

    @Test("A table becomes lines under the same numbers, with the columns that are kept")
    func table() throws {
        let text =
            "id,URL,caption\n1,https://a.example/1.jpg,one\n2,\"https://a.example/2,b.jpg\",\"two\nlines\"\n3,,\n4\n5,no url,x\n"
        #expect(
            try list(text, "t.csv")
                == "\nhttps://a.example/1.jpg\nhttps://a.example/2,b.jpg\n\n{\"url\":\"\"}\n{\"url\":\"\"}\n{\"url\":\"no url\"}\n"
        )
        let kept = try list(text, "t.csv", options { $0.keepColumns = ["caption", "1"] })
        let lines = try #require(kept).split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines[1] == #"{"columns":{"caption":"one","id":"1"},"url":"https://a.example/1.jpg"}"#)
        #expect(lines[2] == #"{"columns":{"caption":"two\nlines","id":"2"},"url":"https://a.example/2,b.jpg"}"#)
        #expect(lines[3].isEmpty)
        let digest = String(repeating: "ab", count: 32)
        let sums = try list(
            "https://a.example/1.jpg\t\(digest)\nhttps://a.example/2.jpg\n", "s.tsv", options { $0.sha256Column = "2" })
        #expect(sums == "{\"sha256\":\"\(digest)\",\"url\":\"https://a.example/1.jpg\"}\nhttps://a.example/2.jpg\n")
        #expect(try list(text, "again.csv") == list(text, "t.csv"))
    }

    @Test("Columns that are not there are named with those that are")
    func columns() throws {
        let text = "id,picture\n1,https://a.example/1.jpg\n"
        for (set, words) in [
            (options(), "name it: --url-column; the first row has id, picture"),
            (options { $0.urlColumn = "img" }, "the first row has id, picture"),
            (options { $0.urlColumn = "3" }, "the first row has id, picture"),
        ] {
            let error = #expect(throws: PrefetchError.self) { try list(text, "t.csv", set) }
            #expect(error?.hint.contains(words) == true, "\(error?.hint ?? "")")
        }
        #expect(try list(text, "t.csv", options { $0.urlColumn = "Picture" }) == "\nhttps://a.example/1.jpg\n")
        #expect(try list(text, "t.csv", options { $0.urlColumn = "2" }) == "\nhttps://a.example/1.jpg\n")
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
        folder.write(
            Array("<sitemapindex>\n<sitemap><loc>https://a/p.xml</loc></sitemap></sitemapindex>".utf8), to: "spool.txt")
        let spooled = try #require(try ListImport(path: folder.path("spool.txt"), isSpooled: true))
        let error = #expect(throws: PrefetchError.self) { try spooled.write(into: here, stem: "s") }
        #expect(
            error?.message
                == "line 2 of standard input names https://a/p.xml, a sitemap, and there is nothing beside standard input"
        )
    }

    @Test("What an input becomes reads back as its entries: their URLs, digests and columns")
    func entries() async throws {
        let urls = ["https://a/1", "https://a/ü", "#x://a", "{x", " https://a/b ", "https://a/\u{7F}", ""]
        let rows = urls.map { "\"\($0)\",v\n" }.joined()
        folder.write(Array("url,k\n\(rows)".utf8), to: "t.csv")
        let found = try #require(
            try ListImport(path: folder.path("t.csv"), options: options { $0.keepColumns = ["k"] }))
        let list = try URLList(path: found.write(into: folder.path(""), stem: "t"))
        var entries: [PrefetchJob.Entry] = []
        try await list.forEach { entry in
            entries.append(entry)
            return true
        }
        #expect(entries.map(\.line) == Array(2...8))
        #expect(entries.map(\.isInvalid) == [false, false, true, true, true, true, true])
        #expect(entries.allSatisfy { $0.columns == ["k": "v"] })
        #expect(entries[1].url == "https://a/ü")
    }
}
