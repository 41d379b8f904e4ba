import Glibc
import Origin
import Prefetch
import TestSupport
import Testing
import WebImage

/// What a load is told, as a user tells it.
@Suite("Options on the command line", .timeLimit(.minutes(5)))
struct EngineTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer
    init() throws {
        origin = try OriginServer()
    }

    private func png(_ seed: Int, _ headers: [(String, String)] = []) -> OriginResponse {
        OriginResponse(headers: headers, body: GeneratedImage.png(seed: UInt64(seed), width: 8, height: 8))
    }

    private var base: [String] {
        ["--cache", folder.path("cache"), "--allow-net", "127.0.0.0/8", "-n", "1", "-q", "--json"]
    }

    @Test(
        "--refresh-cached asks again of what any run has fetched, --refresh-cached=stale only for what is not fresh any more"
    )
    func refresh() async throws {
        origin.route("/a", png(1, [("ETag", "\"a\"")]))
        origin.route("/b", png(2, [("ETag", "\"b\""), ("Cache-Control", "max-age=3600")]))
        let file = list([origin.url("/a"), origin.url("/b")])
        let first = try await ran(["run", file] + base).stdout
        #expect(first.contains(#""downloaded":2"#))
        let second = try await ran(["run", file, "--refresh-cached"] + base).stdout
        #expect(second.contains(#""skipped":0,"#) && second.contains(#""notModified":2"#))
        let third = try await ran(["run", file, "--refresh-cached=stale"] + base).stdout
        #expect(third.contains(#""notModified":1"#) && third.contains(#""hit":1"#))
        origin.route("/a", png(3, [("ETag", "\"c\"")]))
        let fourth = try await ran(["run", file, "--options", "refreshCached"] + base).stdout
        #expect(fourth.contains(#""downloaded":1"#) && fourth.contains(#""notModified":1"#))
        #expect(origin.requestCount() == 7)
        let path = try await ran(["cache", "path", origin.url("/a"), "--cache", folder.path("cache")]).stdout
        #expect(readFile(String(path.dropLast())) == GeneratedImage.png(seed: 3, width: 8, height: 8))
    }

    @Test("Two signed URLs of one image under --cache-key without-query are one transfer and a hit")
    func signedURLs() async throws {
        origin.setFallback { _ in
            var response = png(1)
            response.delay = 0.05
            return response
        }
        let file = list(["/a.png?sig=1", "/a.png?sig=2"].map { origin.url($0) })
        let json = try await ran(["run", file, "--cache-key", "without-query"] + base).stdout
        #expect(json.contains(#""downloaded":1"#) && json.contains(#""hit":1"#))
        #expect(origin.requestCount() == 1)
    }

    @Test("A list of objects asks for each URL by itself, and a retry still knows what")
    func objects() async throws {
        let other = try OriginServer()
        other.route("/mirror", png(1))
        origin.route("/b") { request in
            request.header("X-Token") == "t" && request.number > 1 ? png(2) : OriginResponse(status: 404)
        }
        let lines = [
            #"{"url":"\#(origin.url("/a"))","mirrors":["\#(other.url("/mirror"))"]}"#,
            #"{"url":"\#(origin.url("/b"))","headers":{"X-Token":"t"}}"#,
        ]
        let file = list(lines, "urls.jsonl")
        let run = try await ran(["run", file, "--input-format", "jsonl"] + base, exits: 3).stdout
        #expect(run.contains(#""downloaded":1"#) && run.contains(#""httpError":1"#))
        let cache = ["--cache", folder.path("cache")]
        let failures = try await ran(["failures", "--json"] + cache).stdout
        #expect(
            failures.contains(
                #""line":2,"url":"\#(origin.url("/b"))","outcome":"httpError","reason":null,"http_status":404"#))
        let export = try await ran(["export", "--format", "jsonl"] + cache).stdout
        #expect(export.contains(#""line":1,"url":"\#(origin.url("/a"))","outcome":"downloaded","path":""#))
        let retry = try await ran(["retry"] + base).stdout
        #expect(retry.contains(#""downloaded":1"#) && retry.contains(#""skipped":0"#))
        #expect(origin.requests.filter { $0.path == "/b" }.allSatisfy { $0.header("X-Token") == "t" })
        #expect(try await ran(["fsck"] + cache).stdout == "2 batches, everything agrees\n")
        // From standard input too.
        let again = try await ran(["run", "-"] + base, input: Array((lines.joined(separator: "\n") + "\n").utf8)).stdout
        #expect(again.contains(#""hit":2"#))
    }

    @Test("What is not asked rightly is refused before anything is queued")
    func refused() async throws {
        let plain = list(["http://h/a"])
        try await ran(
            ["run", plain, "--options", "delayPlaceholder"] + base, exits: 64,
            says: "delayPlaceholder has no meaning off a screen: there is no view that could show a placeholder")
        try await ran(["run", plain, "--input-format", "jsonl"] + base, exits: 65, says: "line 1 is not a JSON object")
        let objects = list([#"{"url":"http://h/a","options":["forceTransition"]}"#], "o.jsonl")
        try await ran(["run", objects] + base, exits: 65, says: "line 1: forceTransition has no meaning off a screen")
        try await ran(
            ["submit", plain, "--options", "queryDiskSync", "--redis", "redis://127.0.0.1:1"], exits: 64,
            says: "name it with --cache DIR")
        try await ran(
            ["run", list([origin.url("/x")], "w.txt"), "--allow-invalid-ssl"] + base, exits: 3,
            says: "warning: certificates are not checked")
    }

    @Test("queryDiskSync of submit: what is in the cache is done without a worker")
    func hitsAtSubmit() async throws {
        origin.route("/a", png(1))
        let file = list([origin.url("/a")])
        try await ran(["run", file] + base)
        let redis = try await RedisServer()
        let json = try await ran([
            "submit", file, "--options", "queryDiskSync", "--redis", redis.url, "--cache", folder.path("cache"),
            "--json",
        ]).stdout
        #expect(json.contains(#""state":"done""#) && json.contains(#""hit":1"#), "\(json)")
    }

    @Test("Formats that cannot be verified end as unsupported, with a hint; --unverifiable keep stores them")
    func unverifiable() async throws {
        let heic: [UInt8] = [0, 0, 0, 0x1C] + Array("ftypheic\0\0\0\0mif1miaf and what follows".utf8)
        for path in ["/1.heic", "/2.heic"] { origin.route(path, OriginResponse(body: heic)) }
        origin.route("/3.svg", OriginResponse(body: Array("<svg xmlns='http://www.w3.org/2000/svg'/>".utf8)))
        origin.route("/4.png", png(4))
        let file = list(["/1.heic", "/2.heic", "/3.svg", "/4.png"].map { origin.url($0) })
        let text = base.filter { $0 != "--json" && $0 != "-q" }
        let first = try await ran(["run", file, "--name", "skip"] + text, exits: 3).stdout
        #expect(
            first.contains(
                "  2 images are HEIC, 1 is SVG, which this build cannot verify: --unverifiable keep stores them\n"),
            "\(first)")
        let cache = ["--cache", folder.path("cache")]
        let listed = try await ran(["blacklist", "list"] + cache).stdout
        #expect(!listed.contains("/1.heic") && !listed.contains("/3.svg"), "\(listed)")
        #expect(try await ran(["failures", "skip", "--json"] + cache).stdout.contains(#""outcome":"unsupported""#))
        let second = try await ran(["run", file, "--name", "keep", "--unverifiable", "keep", "--json"] + text).stdout
        #expect(second.contains(#""downloaded":3"#) && second.contains(#""hit":1"#), "\(second)")
        let lines = try await ran(["export", "keep", "--format", "jsonl"] + cache).stdout
        #expect(lines.contains(#""format":"heic""#) && lines.contains(#""level":"header""#), "\(lines)")
        let third = try await ran(["run", file, "--name", "again", "--unverifiable", "keep", "--json"] + text).stdout
        #expect(third.contains(#""hit":4"#), "\(third)")
    }

    @Test("What a batch asks of its images and of their transfers is what it gets")
    func limits() async throws {
        let bytes = GeneratedImage.png(seed: 1, width: 60, height: 60)
        origin.route("/a", OriginResponse(body: bytes))
        origin.route("/half", OriginResponse(body: Array(bytes.prefix(bytes.count / 2))))
        origin.route("/moved", .redirect(to: "/a"))
        let file = list(["/a", "/half", "/moved"].map { origin.url($0) })
        let strict = ["-H", "User-Agent: me", "-H", "X-Own: 1", "--tries", "1"]
        let first = try await ran(["run", file] + strict + base, exits: 3).stdout
        #expect(first.contains(#""downloaded":2"#) && first.contains(#""badImage":1"#), "\(first)")
        #expect(origin.requests.allSatisfy { $0.header("User-Agent") == "me" && $0.header("X-Own") == "1" })
        // Of half an image the header is fine; what was checked less is no hit for who asks more.
        let loose = ["--validate", "header", "--retry-failed", "--blacklist", "none", "--name"]
        let second = try await ran(["run", file] + loose + ["header"] + base).stdout
        #expect(second.contains(#""hit":2"#) && second.contains(#""downloaded":1"#), "\(second)")
        let third = try await ran(["run", file, "--blacklist", "none", "--name", "decode"] + base, exits: 3).stdout
        #expect(third.contains(#""badImage":1"#) && third.contains(#""hit":2"#), "\(third)")
        let size = ["--max-size", String(bytes.count - 1), "--name", "size", "--cache", folder.path("other")]
        let fourth = try await ran(["run", file] + base + size, exits: 3).stdout
        #expect(fourth.contains(#""tooLarge":2"#), "\(fourth)")
    }

    /// A baseline JPEG in grey of 501 megapixels: each block is two bits.
    private static func large() -> [UInt8] {
        let (width, height) = (25_050, 20_000)
        func segment(_ marker: UInt8, _ data: [UInt8]) -> [UInt8] { [0xFF, marker, 0, UInt8(data.count + 2)] + data }
        let codes: [UInt8] = [1] + [UInt8](repeating: 0, count: 16)
        let sides = [height, width].flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        let blocks = (width + 7) / 8 * height / 8
        return [0xFF, 0xD8] + segment(0xDB, [0] + [UInt8](repeating: 1, count: 64))
            + segment(0xC0, [8] + sides + [1, 1, 0x11, 0]) + segment(0xC4, [0x00] + codes)
            + segment(0xC4, [0x10] + codes)
            + segment(0xDA, [1, 1, 0, 0, 63, 0]) + [UInt8](repeating: 0, count: blocks / 4) + [0xFF, 0xD9]
    }

    @Test("An image over a limit is too large, not bad, is not on the blacklist, and the option that is named takes it")
    func largeImage() async throws {
        origin.route("/large", OriginResponse(body: Self.large()))
        let file = list([origin.url("/large")])
        let first = try await ran(["run", file, "--name", "a"] + base, exits: 3).stdout
        #expect(first.contains(#""tooLarge":1"#), "\(first)")
        let cache = ["--cache", folder.path("cache")]
        let causes = try await ran(["failures", "a", "--by", "cause"] + cache).stdout
        #expect(causes.contains("tooLarge  retry with a larger --max-pixels"), "\(causes)")
        let detail = try await ran(["failures", "a"] + cache).stdout
        #expect(
            detail.contains("25050 x 20000 pixels, the limit is 500000000 in all (--max-pixels raises it)"), "\(detail)"
        )
        let second = try await ran(["run", file, "--name", "b", "--max-pixels", "800M"] + base).stdout
        #expect(second.contains(#""downloaded":1"#), "\(second)")
    }

    @Test(
        "Each batch has its own request settings in every worker, in its record too, and a retry changes those it names"
    )
    func requestSettings() async throws {
        let b = try await RemoteBatch()
        origin.setFallback { _ in OriginResponse(status: 503) }
        let bytes = png(1).body
        for path in ["/large", "/small"] { origin.route(path, OriginResponse(body: bytes)) }
        let hasty = ["--tries", "1", "-H", "User-Agent: hasty/1", "-H", "Referer: http://secret.test/"]
        try await b.submit([origin.url("/a"), origin.url("/small")], as: "hasty", hasty)
        let limited = ["--tries", "2", "--max-size", "\(bytes.count - 1)"]
        try await b.submit([origin.url("/b"), origin.url("/large")], as: "limited", limited)
        let options = ["--burst", "--allow-net", "127.0.0.0/8", "-H", "X-Worker: 1"]
        func work() async throws {
            for worker in try await b.workers(1, options) {
                #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
            }
        }
        try await work()
        #expect(try await b.queue.batches.status(of: "limited")?.counts[.tooLarge] == 1)
        #expect(try await b.queue.batches.status(of: "hasty")?.counts[.downloaded] == 1)
        func requests(_ path: String) -> [OriginRequest] { origin.requests.filter { $0.path == path } }
        #expect(requests("/a").count == 1 && requests("/b").count == 2)
        #expect(requests("/a").allSatisfy { $0.header("User-Agent") == "hasty/1" && $0.header("X-Worker") == "1" })
        #expect(requests("/a").allSatisfy { $0.header("Referer") == "http://secret.test/" })
        #expect(requests("/b").allSatisfy { $0.header("Referer") == nil && $0.header("X-Worker") == "1" })
        // A header may be secret: its name is told, not its value.
        let shown = try await b.done(["status", "hasty", "--json"])
        #expect(
            shown.stdout.contains(
                #""requests":{"header":"User-Agent,Referer","tries":"1","ignore_robots_tag":"no"}"#))
        #expect(!shown.stdout.contains("secret.test"))
        try await b.done(["retry", "hasty", "--tries", "2"])
        try await work()
        #expect(requests("/a").count == 3 && requests("/a").allSatisfy { $0.header("User-Agent") == "hasty/1" })
        // A worker's maximum holds whatever a batch asks.
        try await b.submit([origin.url("/large")], as: "large", ["--max-size", "4GiB"])
        for worker in try await b.workers(1, options + ["--max-size", "\(bytes.count - 1)"]) {
            #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        }
        #expect(try await b.queue.batches.status(of: "large")?.counts[.tooLarge] == 1)
    }

    @Test("Credentials by host and a log of transfers")
    func requests() async throws {
        folder.write(Array("machine 127.0.0.1 login me password pw\n".utf8), to: "netrc")
        let bytes = png(1).body
        origin.route("/a") { request in
            request.header("Authorization") == "Basic bWU6cHc="
                ? OriginResponse(headers: [("Content-Type", "image/png")], body: bytes) : OriginResponse(status: 401)
        }
        origin.route("/b", OriginResponse(status: 451))
        let log = folder.path("transfers.jsonl")
        let file = list([origin.url("/a"), origin.url("/b")])
        let json = try await ran(
            ["run", file, "--netrc", folder.path("netrc"), "--transfer-log", log] + base,
            exits: 3
        ).stdout
        #expect(json.contains(#""downloaded":1"#) && json.contains(#""httpError":1"#))
        let lines = String(decoding: folder.read("transfers.jsonl") ?? [], as: UTF8.self).split(separator: "\n")
        for (event, path) in [("start", "/a"), ("response", "/a"), ("stop", "/a"), ("finish", "/a"), ("stop", "/b")] {
            #expect(
                lines.contains { $0.hasPrefix(#"{"event":"\#(event)","url":"\#(origin.url(path))","time":"#) },
                "\(event)")
        }
        let finish = try #require(lines.first { $0.contains(#""event":"finish""#) })
        #expect(finish.contains(#""http_status":200,"http_version":"1.1","milliseconds":{"dns":"#))
        #expect(finish.contains(#""first_byte":"#) && finish.contains(#""reused":"#))
        #expect(lines.contains { $0.contains(#""error":"HTTP 451","outcome":"httpError""#) })
    }
}
