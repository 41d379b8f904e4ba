import Glibc
import TestSupport
import Testing

@testable import Prefetch

@Suite("Files that results replace", .timeLimit(.minutes(5)))
struct ReplacedFileTests {
    private let folder = TemporaryDirectory()

    private func list(_ text: String) throws -> BatchEntries {
        folder.write(Array(text.utf8), to: "urls.txt")
        return BatchEntries(try URLList(path: folder.path("urls.txt")))
    }

    private func isManifest(_ text: String, of entries: BatchEntries) async throws -> Bool {
        folder.write(Array(text.utf8), to: "m")
        let file = try #require(ReplacedFile(folder.path("m")))
        return try await file.isManifest(of: entries) { [$0, $0.uppercased()] }
    }

    @Test("A list is refused by each of its names, also by links; no other file is")
    func lists() throws {
        folder.write(Array("http://h/a\n".utf8), to: "urls.txt")
        folder.write([], to: "empty")
        #expect(symlink("urls.txt", folder.path("link")) == 0)
        #expect(Glibc.link(folder.path("urls.txt"), folder.path("hard")) == 0)
        mkdir(folder.path("sub"), 0o777)
        let lists = ["", folder.path("none"), folder.path("urls.txt")]
        for name in ["urls.txt", "link", "hard", "sub/../urls.txt"] {
            #expect {
                try ReplacedFile.refuse(folder.path(name), over: lists)
            } throws: { ($0 as? PrefetchError)?.kind == .cacheUnavailable }
        }
        for name in ["empty", "none", "sub"] { try ReplacedFile.refuse(folder.path(name), over: lists) }
        try ReplacedFile.refuse("/dev/null", over: lists + ["/dev/null"])
    }

    @Test("An empty file, a missing one and what is no file are free")
    func free() {
        folder.write([], to: "empty")
        for path in [folder.path("empty"), folder.path("none"), "/dev/null", folder.path] {
            #expect(ReplacedFile(path) == nil)
        }
    }

    @Test("A manifest is of a list when its first and its last line are")
    func manifests() async throws {
        let entries = try list("# head\nhttp://h/a\n\nnone\nhttp://h/c\n")
        let first = #"{"line":2,"url":"http://h/a","outcome":"hit"}"#
        let last = #"{"line":5,"url":"http://h/c","outcome":null}"#
        #expect(try await isManifest("\(first)\n{}\n\(last)\n", of: entries))
        // A URL as a manifest shows it.
        #expect(try await isManifest("\(first)\n\(last.replacing("http://h/c", with: "HTTP://H/C"))", of: entries))
        let long = last.dropLast() + #","columns":{"c":"\#(String(repeating: "x", count: 100_000))"}}"#
        #expect(try await isManifest("\(first)\n\(long)\n", of: entries))
        #expect(try await isManifest("line,url,outcome\r\n2,\"http://h/a\",hit\r\n5,\"http://h/c\",\r\n", of: entries))
        #expect(try await isManifest("line\turl\toutcome\n2\thttp://h/a\thit\n5\thttp://h/c\t\n", of: entries))
        for wrong in [
            "http://h/a\nhttp://h/c\n", "x", "{}\n", "\(first)\n", "\(first)\n{}\n",
            "\(first)\n\(last.replacing(":5", with: ":6"))\n", "\(first)\n\(last.replacing("/c", with: "/d"))\n",
            "line,url,outcome\r\n", "line,url,outcome\r\n2,\"http://h/a\",hit\r\n",
            "line,url\r\n2,http://h/a\r\n5,http://h/c\r\n", "url,caption\nhttp://h/a,2\nhttp://h/c,5\n",
        ] {
            let found = try await isManifest(wrong, of: entries)
            #expect(!found, "\(wrong)")
        }
        let none = try list("# empty\n")
        #expect(try await !isManifest("\(first)\n\(last)\n", of: none))
    }
}
