import Glibc
import TestSupport
import Testing

@testable import Prefetch

@Suite("Several lists as one", .timeLimit(.minutes(5)))
struct ListJoinTests {
    private let folder = TemporaryDirectory()

    private func write(_ text: String, _ name: String) -> String {
        folder.write(Array(text.utf8), to: name)
        return folder.path(name)
    }

    private func joined(_ paths: [String]) throws -> ListStream {
        let list = try ListStream(paths)
        mkdir(folder.path("lists"), 0o700)
        try list.keep(in: folder.path("lists"))
        return list
    }

    @Test("Lines follow each other whatever the lists are, and the same lists make the same file")
    func order() async throws {
        let paths = [
            write("http://h/1\r\n\nhttp://h/2", "a.txt"), write("\u{FEFF}# b\nhttp://h/3\n", "b.txt"),
            write("id,url\n1,http://h/4\n2,no\n", "c.csv"), write(#"{"url":"http://h/5"}"#, "d.jsonl"),
        ]
        let list = try joined(paths)
        var entries: [String] = []
        try await BatchEntries(list).forEach { entry in
            entries.append("\(entry.isInvalid ? "!" : "")\(entry.line) \(entry.url)")
            return true
        }
        #expect(entries == ["1 http://h/1", "3 http://h/2", "5 http://h/3", "7 http://h/4", "!8 no", "9 http://h/5"])
        #expect(list.list.stem == "a" && list.reading.total == 6 && list.isWhole)
        #expect(try joined(paths).list.hash == list.list.hash)
        #expect(try joined(paths.reversed()).list.hash != list.list.hash)
    }

    @Test("An error has the name of its list and the line in it")
    func errors() throws {
        let good = write("http://h/1\nhttp://h/2\n", "a.txt")
        for (text, name, message) in [
            ("http://h/1\n{\"url\":\"http://h/2\",\"sha265\":\"\"}\n", "b.txt", "line 2: there is no member 'sha265'"),
            ("url,c\nhttp://h/1,\"x\n", "b.csv", "line 2: a quote that begins there is not closed"),
            ("no\nlist\n", "b.txt", "looks like text without URLs"),
        ] {
            let path = write(text, name)
            let error = #expect(throws: PrefetchError.self) { try joined([good, path]) }
            #expect(error?.kind == .unreadableList)
            #expect(error?.message.contains(path) == true && error?.message.contains(message) == true)
        }
        for (text, name) in [("# none\n\n", "e.txt"), ("url,c\n\n", "e.csv")] {
            for paths in [[write(text, name), good], [good, write(text, name)]] {
                let error = #expect(throws: PrefetchError.self) { try joined(paths) }
                #expect(error?.message == "\(folder.path(name)) has no URL")
            }
        }
    }

    @Test("Folders and patterns stand for their files, by the bytes of their names")
    func paths() throws {
        mkdir(folder.path("d"), 0o777)
        mkdir(folder.path("d/sub"), 0o777)
        mkdir(folder.path("none"), 0o777)
        for name in ["d/b.txt", "d/a.txt", "d/B.txt", "d/ä.txt", "d/.hidden", "[x].txt", "d/sub/c.txt"] {
            _ = write("http://h/1\n", name)
        }
        let all = ["B.txt", "a.txt", "b.txt", "ä.txt"].map { folder.path("d/\($0)") }
        #expect(try ListPaths.files([folder.path("d"), "-", folder.path("d/a.txt")]) == all + ["-", all[1]])
        #expect(try ListPaths.files([folder.path("d/[ab].txt")]) == [all[1], all[2]])
        #expect(try ListPaths.files([folder.path("d*")]) == all)
        #expect(try ListPaths.files([folder.path("[x].txt")]) == [folder.path("[x].txt")])
        #expect(try ListPaths.files([folder.path("missing.txt")]) == [folder.path("missing.txt")])
        for (word, message) in [
            (folder.path("none"), "the folder \(folder.path("none")) has no files"),
            (folder.path("*.csv"), "no file matches \(folder.path("*.csv"))"),
        ] {
            let error = #expect(throws: PrefetchError.self) { try ListPaths.files([word]) }
            #expect(error?.kind == .notFound && error?.message == message)
        }
    }

    @Test("A path may have any bytes: its text is theirs alone, and opens the file")
    func bytes() throws {
        let names: [[UInt8]] = [
            [0x61, 0xE9, 0x62], [0xFF, 0xFE], Array("\u{E9}\u{65}\u{301}".utf8), Array("\u{10FEE9}".utf8),
            [0xE2, 0x82], [0xF4, 0x8F],
            [0xC3, 0xA9, 0xC3],
        ]
        for name in names {
            let text = PathText.text(name)
            let back = PathText.withBytes(text) { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
            #expect(back == name)
            let path = Array(folder.path("").utf8) + name
            let file = (path + [0]).map { CChar(bitPattern: $0) }.withUnsafeBufferPointer {
                open($0.baseAddress!, O_WRONLY | O_CREAT, 0o600)
            }
            #expect(Glibc.write(file, "http://h/1\n", 11) == 11)
            close(file)
            let list = try URLList(path: PathText.text(path))
            #expect(list.total == 1)
            #expect(try URLList(path: list.absolutePath).hash == list.hash)
        }
        #expect(PathText.shown(PathText.text(names[0])) == "a\\xE9b")
        #expect(Set(names.map { Array(PathText.text($0).utf8) }).count == names.count)
        #expect(try ListPaths.files([folder.path("")]).count == names.count)
    }
}
