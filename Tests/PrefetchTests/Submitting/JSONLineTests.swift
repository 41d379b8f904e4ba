import Glibc
import Origin
import TestSupport
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

/// Lists of JSON objects, and the jobs that carry what they ask.
@Suite("Settings of a URL", .timeLimit(.minutes(5)))
struct JSONLineTests {
    private let folder = TemporaryDirectory()
    private static let digest = String(repeating: "0a", count: 32)

    private func list(_ lines: [String], format: ListFormat = .auto) throws(PrefetchError) -> URLList {
        folder.write(Array((lines.joined(separator: "\n") + "\n").utf8), to: "urls.jsonl")
        return try URLList(path: folder.path("urls.jsonl"), format: format)
    }

    private func entries(_ lines: [String]) async throws -> [PrefetchJob.Entry] {
        var entries: [PrefetchJob.Entry] = []
        try await list(lines).forEach { entry in
            entries.append(entry)
            return true
        }
        return entries
    }

    @Test("A line that is an object has its URL and what it asks; one that asks nothing is as a plain line")
    func objects() async throws {
        let entries = try await entries([
            #"{"url":"http://h/a","options":["refreshCached","lowPriority"],"headers":{"Referer":"http://h/"},"#
                + #""sha256":"\#(Self.digest.uppercased())","mirrors":["http://m/a"],"caption":"anything"}"#,
            "http://h/b", #"{"caption": 7, "url": "http://h/c"}"#, #"{"url":"no url"}"#, #"{"caption":7}"#, "{",
        ])
        #expect(entries.map(\.line) == Array(1...6))
        #expect(entries.map(\.isInvalid) == [false, false, false, true, true, true])
        #expect(entries.prefix(3).map(\.url) == ["http://h/a", "http://h/b", "http://h/c"])
        let settings = try #require(entries[0].settings)
        #expect(settings.options == [.refreshCached, .lowPriority] && settings.sha256 == Self.digest)
        #expect(settings.headers == [HTTPHeader("Referer", "http://h/")] && settings.mirrors == ["http://m/a"])
        #expect(entries.dropFirst().allSatisfy { $0.settings == nil })
        #expect(
            settings.text == #"{"headers":{"Referer":"http://h/"},"mirrors":["http://m/a"],"#
                + #""options":["lowPriority","refreshCached"],"sha256":"\#(Self.digest)"}"#)
        var request = LoadRequest(url: "http://h/a", key: "k")
        request.options = .handleCookies
        settings.apply(to: &request)
        #expect(request.options == [.refreshCached, .lowPriority, .handleCookies])
        #expect(request.headers == settings.headers && request.expectedDigest?.hex == Self.digest)
    }

    @Test("NaN and Infinity are read as Python's json.dumps writes them, in strings they stay")
    func numbers() async throws {
        let entries = try await entries([
            #"{"url": "http://h/1", "similarity": NaN, "w": [Infinity, -Infinity]}"#,
            #"{"a":NaN,"url":"http://h/NaN"}"#,
            #"{"url":"http://h/3","t":"\"NaN","w":-Infinity}"#, #"{"url":"http://h/4","w":nan}"#,
        ])
        #expect(entries.map(\.isInvalid) == [false, false, false, true])
        #expect(entries.prefix(3).map(\.url) == ["http://h/1", "http://h/NaN", "http://h/3"])
        #expect(JSONLine.quotingNumbers(Array(#"{"t":"NaN \" Infinity"}"#.utf8)) == nil)
        var members = ListMembers(["score", "t"])
        var text: [UInt8] = []
        let line = #"{"url":"http://h/1","score":NaN,"t":"NaN"}"# + "\n"
        try members.read(Array(line.utf8)[...], into: &text)
        try members.finish(into: &text)
        #expect(
            String(decoding: text, as: UTF8.self)
                == #"{ "columns":{"score":"NaN","t":"NaN"},"url":"http://h/1"}"# + "\n")
    }

    @Test("A member that is kept from a line that is too long is refused with the line")
    func longMembers() throws {
        var members = ListMembers(["a"], of: "l.jsonl")
        var text: [UInt8] = []
        try members.read(Array("{}\n".utf8)[...], into: &text)
        let error = #expect(throws: PrefetchError.self) {
            try members.read([UInt8](repeating: 0x20, count: LineReader.longest + 3)[...], into: &text)
        }
        #expect(error?.message == "line 2 of l.jsonl is longer than 16 MiB")
    }

    @Test("Members with URLs are called as columns of tables are, and url comes first")
    func urlMembers() async throws {
        let lines = [
            #"{"URL":"http://h/0"}"#, #"{"image_url":"http://h/1","TEXT":"a"}"#, #"{"src":"http://h/2"}"#,
            #"{"imageUrl":"http://h/3","link":"http://h/x"}"#, #"{"href":"http://h/x","url":"http://h/4"}"#,
            #"{"image":{"bytes":""},"link":"http://h/5"}"#, #"{"uri":"http://h/6"}"#, #"{"OriginalURL":"http://h/7"}"#,
            #"{"url":null,"src":"http://h/x"}"#, #"{"page":"http://h/x"}"#,
        ]
        let entries = try await entries(lines)
        #expect(entries.prefix(8).map(\.url) == (0..<8).map { "http://h/\($0)" })
        #expect(entries.map(\.isInvalid) == [false, false, false, false, false, false, false, false, true, true])
        #expect(try list(lines).unknownMembers.uses.map(\.name) == ["link", "href", "image", "src", "page"])
        // A member that is kept has its URL still.
        var members = ListMembers(["src"])
        var text: [UInt8] = []
        try members.read(Array((lines[2] + "\n").utf8)[...], into: &text)
        #expect(String(decoding: text, as: UTF8.self) == #"{"columns":{"src":"http://h/2"},"url":"http://h/2"}"# + "\n")
    }

    private struct Read: Equatable {
        var url: String?
        var columns: [String: ColumnValue]?
        var others: [String]
        var settings: URLSettings?

        init?(_ line: JSONLine?) {
            guard let line else { return nil }
            (url, columns, others, settings) = (line.url, line.columns, line.others, try? line.settings())
        }
    }

    @Test("Lines of several shapes are read one behind the other as each is alone")
    func shapes() {
        var random = SplitMix64(state: 7)
        let members = [
            #""url":"http://h/1""#, #""url":null"#, #""url":7"#, #""src":"http://h/2""#, #""src":[]"#,
            #""image":{"bytes":""}"#,
            #""caption":"a \"b\"""#, #""caption":null"#, #""text":"é""#, #""t\u00e9xt":1"#,
            #""sha256":"\#(Self.digest)""#,
            #""sha256":1"#, #""columns":{"a":1,"b":"x"}"#, #""columns":{"odd":"\ud800"}"#, #""columns":[]"#,
            #""options":["refreshCached"]"#, #""a":"\ud800""#, #""a":1"#, #""b":true"#, #""odd":"#,
        ]
        var plan: JSONLine.Plan?
        for _ in 0..<3_000 {
            let some = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                members.randomElement(using: &random) ?? ""
            }
            let line = Array("{\(some.joined(separator: ","))}".utf8)
            for _ in 0..<2 {
                #expect(Read(JSONLine.read(line, &plan)) == Read(JSONLine.read(line)), "\(some)")
            }
        }
    }

    @Test("What is moved to columns is read back, and what a line asks for stays")
    func moved() throws {
        var random = SplitMix64(state: 9)
        let members = [
            #""url":"http://h/1""#, #""url":"http://h/\"1""#, #""src":"http://h/2""#,
            #""caption":"},\"url\":\"http://h/x""#,
            #""sha256":"\#(Self.digest)""#, #""headers":{"X":"}","url":"http://h/3"}"#, #""columns":{"a":"1","c":[2]}"#,
            #""options":["refreshCached"]"#, #""a":"\ud800""#, #""a":1"#, #""b":{"url":"http://h/4"}"#, #""c":true"#,
            #""mirrors":["http://h/5"]"#,
        ]
        var found = 0
        for _ in 0..<3_000 {
            let some = members.shuffled(using: &random).prefix(Int.random(in: 1...4, using: &random))
            let line = Array("{\(some.joined(separator: ","))}".utf8)
            var text: [UInt8] = []
            var mover = ListMembers(["a", "b"])
            try mover.read((line + [0x0A])[...], into: &text)
            #expect(text.popLast() == 0x0A)
            guard let asked = JSONLine.read(line), let object = JSONLine.object(line) else { continue }
            found += 1
            var checks = ListChecks()
            let read = try #require(try checks.add(text, number: 1, .auto, isWritten: true), "\(some)")
            #expect(read.url == asked.url && read.others == [], "\(some)")
            #expect(try read.settings() == asked.settings(), "\(some)")
            var columns: [String: JSONValue] = [:]
            if case .object(let known) = object["columns"] { columns = known }
            for name in ["a", "b", "caption"] { columns[name] = object[name] ?? columns[name] }
            #expect((read.columns ?? [:]) == columns.mapValues(\.column), "\(some)")
        }
        #expect(found > 1_000)
        // What is no object is not taken for one that was written here.
        for line in [
            #"{"columns":{"a":"\q"},"url":"http://h/1"}"#, #"{"columns":{},"headers":{},"url":"http://h/1"}"#,
            #"{"columns":{"a":1,},"url":"http://h/1"}"#, "http://h/1", "# {", "", " {",
        ] {
            var text: [UInt8] = []
            var mover = ListMembers(["a"])
            try mover.read(Array("\(line)\n".utf8)[...], into: &text)
            #expect(JSONLine(written: Array(text.dropLast())) == nil, "\(line)")
        }
        // Only where it is not kept.
        var mover = ListMembers(["heders"])
        var text: [UInt8] = []
        try mover.read(Array("{\"url\":\"http://h/1\",\"heders\":1,\"d\":2}\n".utf8)[...], into: &text)
        #expect(text == Array("{\"columns\":{\"heders\":1},\"url\":\"http://h/1\"}\n".utf8))
        for odd in ["1", "NaN"] {
            var mover = ListMembers(["a"])
            let error = #expect(throws: PrefetchError.self) {
                try mover.read(Array("\n{\"url\":\"http://h/1\",\"mirors\":\(odd)}\n".utf8)[...], into: &text)
            }
            #expect(error?.message == "line 2: there is no member 'mirors'" && error?.hint == "did you mean 'mirrors'?")
        }
    }

    @Test("The line of a row is read by its end as it is read whole")
    func written() throws {
        var random = SplitMix64(state: 8)
        let parts = ["a", "é", "\"", "\\", "\n", "},\"url\":\"", "http://h/", "{", "}", ",", "\u{7F}", "  "]
        var count = 0
        for _ in 0..<3_000 {
            func text() -> [UInt8] {
                (0..<Int.random(in: 0...6, using: &random)).flatMap { _ in
                    Array((parts.randomElement(using: &random) ?? "").utf8)
                }
            }
            let cells = [text(), text(), Bool.random(using: &random) ? [0xFF] : text()]
            let form = ImportedLine.Form(Bool.random(using: &random) ? [("b", 1), ("a", 2)] : [])
            let digest = Int.random(in: 0...9, using: &random) == 0 ? Array(Self.digest.utf8)[...] : []
            var line: [UInt8] = []
            let (one, all) = (cells[0].count + cells[1].count, cells.flatMap(\.self))
            let places = [0..<cells[0].count, cells[0].count..<one, one..<all.count]
            all.withUnsafeBufferPointer { all in
                ImportedLine.write(
                    cells[0][...], sha256: digest, form, { UnsafeBufferPointer(rebasing: all[places[$0]]) }, to: &line)
            }
            line.removeLast()
            guard let written = JSONLine(written: line) else { continue }
            count += 1
            #expect(Read(written) == Read(JSONLine.read(line)) && written.columns?.count == 2)
        }
        #expect(count > 500)
        for line in [
            #"{"url":"http://h/"}"#, #"{"columns":{},"url":"a\"b"}"#, #"{"columns":{"a":"},"url":"}"#,
            #"{"columns":{}}"#,
        ] {
            #expect(JSONLine(written: Array(line.utf8)) == nil, "\(line)")
        }
    }

    @Test(
        "A list that asks for what there is not is refused with its line",
        arguments: [
            (
                #"{"url":"http://h/a","options":["delayPlaceholder"]}"#,
                "line 2: delayPlaceholder has no meaning off a screen"
            ),
            (#"{"url":"http://h/a","options":["nope"]}"#, "line 2: there is no option 'nope'; there are retryFailed, "),
            (#"{"url":"http://h/a","sha256":"12"}"#, "line 2: sha256 has to be 64 hexadecimal digits"),
            (
                #"{"url":"http://h/a","headers":{\#((0..<65).map { "\"X-\($0)\":\"\"" }.joined(separator: ","))}}"#,
                "line 2: a URL has at most 64 headers of its own, of 16384 bytes in all"
            ),
            (
                #"{"url":"http://h/a","headers":{"X":"\#(String(repeating: "v", count: 16_384))"}}"#,
                "line 2: a URL has at most 64 headers of its own, of 16384 bytes in all"
            ),
            (#"{"url":"http://h/a","headers":{"A":"b\r\nC: d"}}"#, "line 2: the header A has a character"),
            (
                #"{"url":"http://h/a","headers":{"Content-length":"9"}}"#,
                "line 2: the header Content-length cannot be set"
            ),
            (#"{"url":"http://h/a","headers":{"TE":"trailers"}}"#, "line 2: the header TE cannot be set"),
            (#"{"url":"http://h/a","mirrors":["x"]}"#, "line 2: a mirror has to be a URL"),
        ])
    func refused(line: String, says text: String) {
        let error = #expect(throws: PrefetchError.self) { try list(["http://h/1", line]) }
        #expect(error?.kind == .unreadableList && error?.message.hasPrefix(text) == true, "\(error?.message ?? "")")
    }

    @Test(
        "A member whose name is nearly one that asks refuses the list with its line and what was meant",
        arguments: [
            ("sha265", "sha256"), ("SHA256", "sha256"), ("header", "headers"), ("haeders", "headers"),
            ("mirror", "mirrors"),
            ("optoins", "options"), ("column", "columns"),
        ])
    func misspelt(name: String, meant: String) {
        let line = #"{"url":"http://h/a","\#(name)":"x"}"#
        let error = #expect(throws: PrefetchError.self) { try list(["http://h/1", "", line]) }
        #expect(error?.kind == .unreadableList && error?.message == "line 3: there is no member '\(name)'")
        #expect(error?.hint.hasPrefix("did you mean '\(meant)'?") == true, "\(error?.hint ?? "")")
    }

    @Test("Other members are counted by their names, the first hundred of them")
    func others() throws {
        let two = try list([
            #"{"url":"http://h/a","src":1,"id":2}"#, "http://h/b", #"{"id":null,"url":"http://h/c","alt":"x","tag":1}"#,
        ])
        #expect(
            two.unknownMembers.uses == [
                .init(name: "id", count: 2, line: 1), .init(name: "src", count: 1, line: 1),
                .init(name: "tag", count: 1, line: 3),
            ])
        #expect(!two.unknownMembers.hasMore)
        let many = try list((0..<200).map { #"{"url":"http://h/a","field\#($0)":0}"# })
        #expect(many.unknownMembers.uses.count == 100 && many.unknownMembers.hasMore)
    }

    @Test("A format that was named holds for every line")
    func formats() throws {
        let (object, plain) = (#"{"url":"http://h/a"}"#, "http://h/a")
        #expect(try list([object, "", "# comment", object], format: .jsonl).total == 2)
        #expect(try list([plain, plain], format: .plain).total == 2)
        let noObject = #expect(throws: PrefetchError.self) { try list([object, plain], format: .jsonl) }
        #expect(noObject?.message == "line 2 is not a JSON object")
        let noPlain = #expect(throws: PrefetchError.self) { try list([plain, object], format: .plain) }
        #expect(noPlain?.message == "line 2 begins as a JSON object does, and the list is to be plain")
        #expect(try list([#"{"url":"http://h/a","options":["queryDiskSync"]}"#, plain]).lineOptions == .queryDiskSync)
    }

    @Test("A job carries the settings of its URLs, in a form that programs without them do not take for theirs")
    func job() async throws {
        let entries = try await entries([
            "http://host.example/a.jpg", #"{"url":"http://host.example/b.jpg","mirrors":["http://m/b"]}"#,
            "http://host.example/c.jpg", #"{"url":"http://host.example/d.jpg","options":["retryFailed"]}"#,
        ])
        let job = PrefetchJob(batch: "b", base: 0, entries: entries)
        let payload = job.encoded()
        #expect(payload.starts(with: "prefetch-job 2 b:0:4 ".utf8))
        #expect(PrefetchJob(payload) == job)
        #expect(PrefetchJob(payload)?.entries.map(\.settings) == entries.map(\.settings))
        for part in job.split(into: 2) { #expect(PrefetchJob(part.encoded()) == part) }
        // Settings that are none make it no job.
        let broken = String(decoding: payload, as: UTF8.self).replacing("retryFailed\"]}", with: "retryFailed\"]")
        let body = broken.utf8[broken.utf8.index(after: broken.utf8.firstIndex(of: 10)!)...]
        #expect(PrefetchJob(Array("prefetch-job 2 b:0:4 \(CRC32.hex(of: Array(body)))\n".utf8) + Array(body)) == nil)
    }

    @Test("What was skipped keeps its settings for the next time")
    func details() async throws {
        let entry = try #require(try await entries([#"{"url":"http://h/a","options":["retryFailed"]}"#]).first)
        for (detail, settings) in [("HTTP 404", entry.settings), ("a\tb", entry.settings), ("a\t{", nil), ("", nil)] {
            let failure = FailureDetail(
                line: 1, url: entry.url, outcome: .httpError, detail: detail, settings: settings)
            #expect(FailureDetail(encoded: failure.encoded()) == failure)
        }
    }
}
