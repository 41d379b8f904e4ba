import Foundation
import Origin
import TestSupport
import Testing

/// Lists that have an address, with the built program.
@Suite("Lists with an address", .timeLimit(.minutes(5)))
struct ListAddressTests: CommandSuite {
    let folder = TemporaryDirectory()
    private let images: OriginServer
    private let lists: OriginServer

    init() throws {
        (images, lists) = (try OriginServer(), try OriginServer())
        images.setFallback { request in
            let seed = UInt64(request.path.utf8.reduce(0) { $0 &* 31 &+ Int($1) })
            return OriginResponse(body: GeneratedImage.png(seed: seed, width: 16, height: 16))
        }
    }

    private var cache: String { folder.path("cache") }

    private func list(_ range: Range<Int>) -> [UInt8] {
        Array(range.map { images.url("/\($0).png") + "\n" }.joined().utf8)
    }

    private func table(_ range: Range<Int>) -> [UInt8] {
        Array(("url,caption\n" + range.map { images.url("/\($0).png") + ",c\($0)\n" }.joined()).utf8)
    }

    private func run(
        _ words: [String], _ environment: [String: String] = [:], allow: [String] = ["--allow-net", "127.0.0.0/8"]
    ) async throws -> ChildProcess {
        try await ended(
            ["run"] + words + allow + ["--cache", cache, "--state", folder.path("state"), "-n", "1"],
            environment: environment)
    }

    private var stored: Int {
        TemporaryDirectory.contents(cache + "/v1").filter { !$0.hasSuffix("/") }.count
    }

    @Test(
        "A list is fetched once, and asked for changes: a changed one is another list, one whose server is away stays"
    )
    func web() async throws {
        let body = list(0..<3)
        lists.route(
            "/my%20urls.txt?token=secret",
            sequence: [
                OriginResponse(headers: [("ETag", "\"1\"")], body: body),
                OriginResponse(status: 304, headers: [("ETag", "\"1\"")]),
                OriginResponse(headers: [("ETag", "\"2\"")], body: body + list(3..<4)), OriginResponse(status: 503),
            ])
        let address = lists.url("/my%20urls.txt?token=secret")
        let first = try await run([address])
        #expect(await first.wait() == .exited(0), "\(first.stderr)")
        #expect(
            first.stderr.contains("\(body.count) B fetched from \(lists.url("/my%20urls.txt?token=***"))"),
            "\(first.stderr)")
        #expect(!first.stderr.contains("secret") && !first.stdout.contains("secret"), "\(first.stderr)")
        #expect(stored == 3)
        let second = try await run([address])
        #expect(await second.wait() == .exited(0) && second.stderr.contains("has not changed"), "\(second.stderr)")
        #expect(lists.requests.map { $0.header("If-None-Match") } == [nil, "\"1\""])
        #expect(images.requestCount() == 3)
        let third = try await run([address])
        #expect(await third.wait() == .exited(0), "\(third.stderr)")
        #expect(images.requestCount() == 4 && lists.requestCount() == 3)
        let fourth = try await run([address, "--tries", "1"])
        #expect(await fourth.wait() == .exited(0), "\(fourth.stderr)")
        #expect(fourth.stderr.contains("the copy of it is read") && images.requestCount() == 4, "\(fourth.stderr)")
    }

    @Test(
        "Several lists are one, in their order; a missing one ends the run with its address"
    )
    func several() async throws {
        lists.route("/a.csv", OriginResponse(body: table(0..<2)))
        lists.route("/b.csv", OriginResponse(body: table(2..<5)))
        let file = folder.path("own.csv")
        folder.write(table(5..<6), to: "own.csv")
        let words = [lists.url("/a.csv"), file, lists.url("/b.csv"), "--keep-columns", "caption"]
        let run = try await run(words)
        #expect(await run.wait() == .exited(0), "\(run.stderr)")
        let manifest = try await ended(
            ["export", "--format", "jsonl", "--cache", cache, "--state", folder.path("state")])
        let rows = manifest.stdout.split(separator: "\n")
        #expect(rows.count == 6 && rows[2].contains("/5.png") && rows[2].contains(#""caption":"c5""#), "\(rows)")
        let missing = try await self.run([lists.url("/a.csv"), lists.url("/none.csv")])
        #expect(await missing.wait() == .exited(66), "\(missing.stderr)")
        #expect(missing.stderr.contains("there is no list at \(lists.url("/none.csv"))"), "\(missing.stderr)")
    }

    @Test("A cut list is none, and what is in a private network is not asked for unless that is allowed")
    func refused() async throws {
        lists.route(
            "/cut.txt", OriginResponse(body: list(0..<50), fault: .truncated(after: 200), closesConnection: true))
        let cut = try await run([lists.url("/cut.txt")])
        #expect(await cut.wait() == .exited(75) && cut.stderr.contains("cannot fetch"), "\(cut.stderr)")
        #expect(
            images.requestCount() == 0
                && TemporaryDirectory.contents(folder.path("state/fetched")).allSatisfy { $0.hasSuffix("/") })
        let closed = try await run([lists.url("/a.txt")], allow: [])
        #expect(await closed.wait() == .exited(65) && lists.requestCount("/a.txt") == 0, "\(closed.stderr)")
        #expect(closed.stderr.contains("PREFETCH_ALLOW_NET=127.0.0.1"), "\(closed.stderr)")
    }

    /// A stand-in for the Hugging Face hub with one dataset, which sends who asks for a file to another server.
    private func hub() -> OriginServer? {
        guard let store = try? OriginServer() else { return nil }
        let pages = [
            #"[{"type":"file","path":"data/README.md","size":1},{"type":"file","path":"data/b.csv","size":1}]"#,
            #"[{"type":"directory","path":"data/old","size":0},{"type":"file","path":"data/a.csv","size":1}]"#,
        ]
        let tree = "/api/datasets/owner/name/tree/main/data"
        let (next, answers) = (lists.url(tree + "?cursor=2"), ["a": table(0..<2), "b": table(2..<3)])
        lists.setFallback { request in
            guard request.header("Authorization") == "Bearer hf_secret" else { return OriginResponse(status: 401) }
            switch request.path {
            case tree:
                return OriginResponse(headers: [("Link", "<\(next)>; rel=\"next\"")], body: Array(pages[0].utf8))
            case tree + "?cursor=2": return OriginResponse(body: Array(pages[1].utf8))
            case "/datasets/owner/name/resolve/main/data/a.csv", "/datasets/owner/name/resolve/v%2F2/data/a.csv":
                return .redirect(to: store.url("/a"))
            case "/datasets/owner/name/resolve/main/data/b.csv": return .redirect(to: store.url("/b"))
            default: return OriginResponse(status: 404)
            }
        }
        store.setFallback { request in
            guard request.header("Authorization") == nil else { return OriginResponse(status: 400) }
            return OriginResponse(body: answers[String(request.path.dropFirst())] ?? [])
        }
        return store
    }

    @Test("A file, a folder and a pattern of the hub are lists; its token goes to the hub alone")
    func hubLists() async throws {
        let store = try #require(hub())
        let known = ["HF_ENDPOINT": lists.url("/"), "HF_TOKEN": "hf_secret"]
        let file = try await run(["hf://datasets/owner/name/data/a.csv"], known)
        #expect(await file.wait() == .exited(0) && images.requestCount() == 2, "\(file.stderr)")
        let all = try await run(["hf://datasets/owner/name/data"], known)
        #expect(await all.wait() == .exited(0) && images.requestCount() == 3, "\(all.stderr)")
        #expect(all.stderr.contains("hf://datasets/owner/name/data/b.csv"), "\(all.stderr)")
        let pattern = try await run(["hf://datasets/owner/name/data/[a]*.csv", "--dry-run"], known)
        #expect(await pattern.wait() == .exited(0) && pattern.stdout.contains("2"), "\(pattern.stderr)")
        let version = try await run(["hf://datasets/owner/name@v%2F2/data/a.csv"], known)
        #expect(await version.wait() == .exited(0), "\(version.stderr)")
        #expect(lists.requestCount("/datasets/owner/name/resolve/v%2F2/data/a.csv") == 1)
        #expect(store.requests.allSatisfy { $0.header("Authorization") == nil } && store.requestCount() > 0)
    }

    @Test(
        "What the hub does not give is said in a sentence",
        arguments: [
            ("hf://datasets/owner/name/data/a.csv", "", 65, "set HF_TOKEN"),
            ("hf://datasets/owner/name/data/a.csv", "hf_other", 65, "HF_TOKEN may not read it"),
            ("hf://datasets/owner/name/data/c*.csv", "hf_secret", 66, "in it are README.md, b.csv, old, a.csv"),
            ("hf://datasets/owner/other/data", "hf_secret", 66, "there is no hf://datasets/owner/other/data"),
            ("hf://datasets/owner/name/data/c.csv", "hf_secret", 66, "there is no list at"),
            ("hf://owner/name/a.csv", "hf_secret", 78, "hf://datasets/OWNER/NAME/PATH"),
        ])
    func hubRefuses(_ address: String, _ token: String, _ code: Int32, _ text: String) async throws {
        let store = try #require(hub())
        let run = try await run([address], ["HF_ENDPOINT": lists.url(""), "HF_TOKEN": token])
        #expect(await run.wait() == .exited(code) && run.stderr.contains(text), "\(run.stderr)")
        #expect(store.requestCount() == 0 && images.requestCount() == 0)
    }
}
