import Origin
import TestSupport
import Testing

/// Images that are not stored under their URL alone are found by who asks for them.
@Suite("Commands and the keys of lines", .timeLimit(.minutes(5)))
struct StoredKeyCommandTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer
    private var at: [String] { ["--cache", folder.path("cache")] }
    private var net: [String] { ["--allow-net", "127.0.0.0/8", "-q", "-n", "1"] + at }

    init() throws {
        origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(status: 404) }
    }

    private func route(_ path: String, _ seed: UInt64) {
        origin.route(path, OriginResponse(body: GeneratedImage.png(seed: seed, width: 8, height: 8)))
    }

    /// The path of an image in the cache, out of an answer of `why`.
    private func path(_ answer: String) throws -> String {
        let start = try #require(answer.firstRange(of: #""path":""#)?.upperBound, "\(answer)")
        return String(answer[start...].prefix { $0 != "\"" })
    }

    @Test("Lines with headers, and with mirrors", arguments: ["headers", "mirrors"])
    func lines(_ kind: String) async throws {
        route("/a.png", 1)
        let url = origin.url(kind == "headers" ? "/a.png" : "/none.png")
        let line =
            kind == "headers"
            ? #"{"url":"\#(url)","headers":{"X-Key":"1"}}"#
            : #"{"url":"\#(url)","mirrors":["\#(origin.url("/a.png"))"]}"#
        folder.write(Array("\(line)\n".utf8), to: "list.jsonl")
        try await ran(["run", folder.path("list.jsonl")] + net)
        let answer = try await ran(["why", url, "--json"] + at).stdout
        #expect(answer.contains(#""key":"prefetch:"#), "\(answer)")
        let file = try path(answer)
        #expect(try await ran(["why", url] + at).stdout.contains("under the key prefetch:"))
        #expect(try path(try await ran(["why", line, "--json"] + at).stdout) == file)
        #expect(try await ran(["cache", "path", line] + at).stdout == "\(file)\n")
        #expect(folder.read("cache/\(file.split(separator: "/cache/").last ?? "")") != nil)
        // Nothing is under the URL itself.
        try await ran(["cache", "path", url] + at, exits: 66)
        let other = #"{"url":"\#(url)","headers":{"X-Key":"2"}}"#
        try await ran(["cache", "path", other] + at, exits: 66)
        let missing = try await ran(["cache", "path", "--missing", other] + at, exits: 66)
        #expect(missing.stdout == "\(other)\n")
    }

    @Test("A --cache-key that makes another absolute URL of it")
    func rule() async throws {
        route("/b.png", 2)
        let (url, rule) = (origin.url("/b.png"), "s|^.*$|http://key.example/b|")
        folder.write(Array("\(url)\n".utf8), to: "list.txt")
        try await ran(["run", folder.path("list.txt"), "--cache-key", rule] + net)
        let answer = try await ran(["why", url, "--json"] + at).stdout
        #expect(answer.contains(#""key":"prefetch:"#), "\(answer)")
        #expect(try await ran(["cache", "path", url, "--cache-key", rule] + at).stdout == "\(try path(answer))\n")
        try await ran(["cache", "path", url] + at, exits: 66)
    }

    @Test("What is no line of a list is said to be unknown, as before")
    func wrong() async throws {
        route("/c.png", 3)
        folder.write(Array("\(origin.url("/c.png"))\n".utf8), to: "list.txt")
        try await ran(["run", folder.path("list.txt")] + net)
        for word in ["{", #"{"url":7}"#, #"{"headers":{"A":"b"}}"#, #"{"url":"no"}"#] {
            try await ran(["cache", "path", word] + at, exits: 66)
            try await ran(["why", word] + at, exits: 66)
        }
        let answer = try await ran(["why", origin.url("/c.png"), "--json"] + at).stdout
        #expect(answer.contains(#""key":"\#(origin.url("/c.png"))""#), "\(answer)")
    }
}
