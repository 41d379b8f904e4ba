import Foundation
import Origin
import Prefetch
import TestSupport
import Testing
import WebImage

/// Batches that take only some images, by their first bytes.
@Suite("Rules on the command line", .timeLimit(.minutes(5)))
struct ImageRuleTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer
    init() throws {
        origin = try OriginServer()
    }

    private var cache: [String] { ["--cache", folder.path("cache")] }
    private let fetch = ["--allow-net", "127.0.0.0/8", "-n", "1", "-q"]

    private func run(_ options: [String], exits code: Int32 = 0) async throws -> String {
        try await ran(["run", folder.path("urls.txt")] + cache + fetch + ["--json"] + options, exits: code).stdout
    }

    /// `2 filtered 640 x 40 pixels; …` for each failure of the newest batch.
    private func failures() async throws -> [String] {
        struct Failure: Decodable { let line: Int, outcome: String, detail: String, tries: Int }
        let lines = try await ran(["failures", "--json"] + cache).stdout.split(separator: "\n")
        return try lines.map { line in
            let failure = try JSONDecoder().decode(Failure.self, from: Data(line.utf8))
            return "\(failure.line) \(failure.outcome) \(failure.tries) \(failure.detail)"
        }.sorted()
    }

    private func routes() {
        let long = [UInt8](repeating: 0, count: 3_000_000)
        origin.route("/a.jpg", OriginResponse(body: GeneratedImage.jpeg(seed: 1, width: 400, height: 300)))
        origin.route("/b.jpg", OriginResponse(body: GeneratedImage.jpeg(seed: 2, width: 80, height: 60) + long))
        origin.route("/c.png", OriginResponse(body: GeneratedImage.png(seed: 3, width: 300, height: 30)))
        origin.route("/d.gif", OriginResponse(body: GeneratedImage.gif(seed: 4, width: 200, height: 200, frames: 1)))
    }

    @Test("What breaks a rule is no failure, has its figure, is not listed, and costs no transfer")
    func refused() async throws {
        routes()
        let urls = ["/a.jpg", "/b.jpg", "/c.png", "/d.gif"].map { origin.url($0) + "\n" }.joined()
        folder.write(Array(urls.utf8), to: "urls.txt")
        let rules = ["--min-size", "100x0", "--max-aspect-ratio", "4", "--types", "jpg,png"]
        let first = try await run(rules)
        #expect(first.contains(#""downloaded":1"#) && first.contains(#""filtered":3"#), "\(first)")
        #expect(first.contains(#""refused_images":3"#) && first.contains(#""failed_tries":0"#), "\(first)")
        let options = #""rules":{"min_size":"100x0","max_aspect_ratio":"4","types":"jpeg,png"}"#
        #expect(first.contains(options), "\(first)")
        let saved = first.split(separator: #""bytes_saved":"#).last.flatMap { Int($0.prefix { $0.isNumber }) }
        #expect((saved ?? 0) > 1_000_000, "\(first)")
        let expected = [
            "2 filtered 1 80 x 60 pixels; the minimum width is 100",
            "3 filtered 1 300 x 30 pixels; the maximum aspect ratio is 4",
            "4 filtered 1 gif; the accepted types are jpeg, png",
        ]
        #expect(try await failures() == expected)
        #expect(try await ran(["blacklist", "list"] + cache).stdout.isEmpty)

        // The summary for people; what is cached is judged by its record.
        let summary = try await ran(
            ["run", folder.path("urls.txt")] + cache + fetch + ["--min-size", "0x100"])
        #expect(summary.stdout.contains("  rules about size and type refused 2 images: "), "\(summary.stdout)")
        let strict = try await run(["--min-size", "500x0", "--options", "fromCacheOnly"], exits: 3)
        #expect(strict.contains(#""filtered":2"#) && strict.contains(#""notCached":2"#), "\(strict)")
        #expect(strict.contains(#""refused_images":0"#))
        #expect(
            try await failures().first == "1 filtered 0 400 x 300 pixels; the minimum width is 500")

        // A retry with other rules takes what they allow.
        let retried = try await ran(
            ["retry"] + cache + fetch + ["--json", "--min-size", "200"], exits: 3)
        #expect(retried.stdout.contains(#""rules":{"min_size":"200x200"}"#), "\(retried.stdout)")
    }

    @Test(
        "What the filters of a run leave out is no failure, unless nothing is left; robots and a worker's own filter fail"
    )
    func exits() async throws {
        routes()
        origin.route("/robots.txt", OriginResponse(body: Array("User-agent: *\nDisallow: /c.png".utf8)))
        let urls = ["/a.jpg", "/b.jpg", "/c.png", "/d.gif"].map { origin.url($0) }
        folder.write(Array(urls.map { $0 + "\n" }.joined().utf8), to: "urls.txt")
        func run(_ place: String, _ options: [String], exits code: Int32) async throws -> String {
            try await ran(
                ["run", folder.path("urls.txt"), "--cache", folder.path(place), "--json"] + fetch + options, exits: code
            ).stdout
        }
        let some = try await run("some", ["--url-filter", "jpg$"], exits: 0)
        #expect(some.contains(#""downloaded":2"#) && some.contains(#""filtered":2"#), "\(some)")
        let none = try await run("none", ["--url-filter", "webp$"], exits: 3)
        #expect(none.contains(#""downloaded":0"#) && none.contains(#""filtered":4"#), "\(none)")
        let small = try await run("small", ["--min-size", "5000"], exits: 3)
        #expect(small.contains(#""downloaded":0"#) && small.contains(#""filtered":4"#), "\(small)")
        let robots = try await run("robots", ["--robots", "--types", "jpeg,png"], exits: 3)
        #expect(robots.contains(#""downloaded":2"#) && robots.contains(#""refused":1"#), "\(robots)")
        #expect(robots.contains(#""filtered":1"#), "\(robots)")

        let b = try await RemoteBatch()
        let waiting = try await b.coord(["submit", b.list(urls), "--name", "b", "--wait", "--json"])
        // A burst leaves at once where nothing is queued yet.
        try await until { try await b.queue.batches.status(of: "b")?.isSealed == true }
        for worker in try await b.workers(1, ["--url-filter", "jpg$"]) {
            #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        }
        #expect(await waiting.wait() == .exited(3), "\(waiting.stderr)")
        #expect(waiting.stdout.contains(#""downloaded":2"#) && waiting.stdout.contains(#""refused":2"#))
        let failures = try await b.done(["failures", "b", "--json"])
        #expect(failures.stdout.components(separatedBy: #""reason":"workerFilter""#).count == 3, "\(failures.stdout)")
    }

    @Test("A line's own rules replace those of the batch")
    func lines() async throws {
        routes()
        let lines = [
            #"{"url":"\#(origin.url("/a.jpg"))","rules":{"min_size":"401x0"}}"#,
            #"{"url":"\#(origin.url("/b.jpg"))","rules":{"min_size":1}}"#,
            #"{"url":"\#(origin.url("/c.png"))","rules":{"types":["webp"]}}"#,
            #"{"url":"\#(origin.url("/d.gif"))"}"#,
        ]
        folder.write(Array((lines.joined(separator: "\n") + "\n").utf8), to: "urls.txt")
        let result = try await run(["--min-size", "100x0", "--validate", "header"])
        #expect(result.contains(#""downloaded":2"#) && result.contains(#""filtered":2"#), "\(result)")
        let expected = [
            "1 filtered 1 400 x 300 pixels; the minimum width is 401", "3 filtered 1 png; the accepted types are webp",
        ]
        #expect(try await failures() == expected)
        for (member, text) in [
            (#"{"min_sice":5}"#, "did you mean 'min_size'?"), (#"{"min_size":-1}"#, "for both, from 0"),
            (#"{"types":["jpge"]}"#, "did you mean 'jpeg'?"), (#"{"types":"jpeg"}"#, "a list of names"),
            (#"{"max_pixels":5,"min_size":"6x0"}"#, "at least 6 and at most 5"),
        ] {
            let line = #"{"url":"\#(origin.url("/a.jpg"))","rules":\#(member)}"# + "\n"
            folder.write(Array(("http://h/\n" + line).utf8), to: "urls.txt")
            let result = try await ran(["run", folder.path("urls.txt")] + cache + fetch, exits: 65)
            #expect(result.stderr.contains("line 2: ") && result.stderr.contains(text), "\(result.stderr)")
        }
    }

    @Test("Resized images are judged by what they were made of")
    func resized() async throws {
        routes()
        let urls = ["/a.jpg", "/c.png", "/d.gif"].map { origin.url($0) + "\n" }.joined()
        folder.write(Array(urls.utf8), to: "urls.txt")
        let resize = ["--resize", "64x64", "--image-format", "png"]
        #expect(try await run(resize).contains(#""downloaded":3"#))
        #expect(origin.requestCount() == 3)
        let judged = try await run(resize + ["--min-size", "250x100"])
        #expect(judged.contains(#""hit":1"#) && judged.contains(#""filtered":2"#), "\(judged)")
        let expected = [
            "2 filtered 0 300 x 30 pixels; the minimum height is 100",
            "3 filtered 0 200 x 200 pixels; the minimum width is 250",
        ]
        #expect(try await failures() == expected)
        let typed = try await run(resize + ["--types", "jpeg"])
        #expect(typed.contains(#""hit":1"#) && typed.contains(#""filtered":2"#), "\(typed)")
        #expect(origin.requestCount() == 3)
    }

    @Test("What cannot be is a usage error with a hint")
    func usage() async throws {
        folder.write(Array("http://h/\n".utf8), to: "urls.txt")
        for (options, text) in [
            (
                ["--min-size", "200x-1"],
                "--min-size is WxH, or a number for both, from 0 (no limit) to 1000000, not '200x-1'"
            ),
            (["--min-size", "200x"], "--min-size is WxH"), (["--max-pixels", "lots"], "--max-pixels"),
            (["--max-pixels", "0"], "--max-pixels is a number of pixels from 1 to"),
            (["--max-aspect-ratio", "0.5"], "a number from 1"),
            (["--types", "jpge"], "did you mean 'jpeg'?"), (["--types", ","], "no image type"),
            (["--min-size", "2000000", "--max-pixels", "1M"], "--min-size is WxH"),
            (
                ["--min-size", "2000x1000", "--max-pixels", "1M"],
                "at least 2000000 and at most 1000000 pixels"
            ),
            (["--validate", "none", "--min-size", "5"], "use --validate header"),
            (["--min-image-size", "5"], "--min-size WXH: "), (["--min-width", "5"], "--min-size WXH: "),
            (["--min_height", "5"], "--min-size WXH: "), (["--max-image-area", "5"], "--max-pixels"),
        ] {
            let result = try await ran(["run", folder.path("urls.txt")] + cache + options, exits: 64)
            #expect(result.stderr.contains(text), "\(options): \(result.stderr)")
        }
    }
}
