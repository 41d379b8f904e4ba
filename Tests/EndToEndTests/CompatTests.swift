import Origin
import TestSupport
import Testing

/// `--compat sd3`: what SDWebImage 3 did, as one name.
@Suite("The original's behaviour", .timeLimit(.minutes(5)))
struct CompatTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let net = ["--allow-net", "127.0.0.0/8", "--tries", "1", "--timeout", "2s", "-q", "-n", "2", "--json"]

    /// The counts that are not 0, in the order of the outcomes.
    private func outcomes(_ json: String) -> [String] {
        let text = json.split(separator: #""outcomes":{"#).last?.prefix { $0 != "}" } ?? ""
        return text.split(separator: ",").filter { !$0.hasSuffix(":0") }.map { $0.filter { $0 != "\"" } }
    }

    @Test("The failed set is asked first, every status is listed, and only a download takes a URL off")
    func sd3() async throws {
        let origin = try OriginServer()
        let closed = try ClosedPort()
        func png(_ seed: Int) -> OriginResponse {
            OriginResponse(body: GeneratedImage.png(seed: UInt64(seed), width: 8, height: 8))
        }
        for (index, name) in ["ok", "cached"].enumerated() { origin.route("/\(name)", png(index)) }
        for status in [404, 503] { origin.route("/\(status)", OriginResponse(status: status)) }
        origin.route("/healed", OriginResponse(status: 500))
        origin.route("/bad", OriginResponse(body: Array("no image at all".utf8)))
        origin.route("/reset", OriginResponse(body: [1, 2, 3], fault: .resetBeforeHeader))
        origin.route("/stall", OriginResponse(fault: .stallBeforeHeader))
        let refused = "http://127.0.0.1:\(closed.port)/x"
        let cache = ["--cache", folder.path("cache")]

        let one = list([origin.url("/cached")], "one.txt")
        #expect(outcomes(try await ran(["run", one] + cache + net).stdout) == ["downloaded:1"])
        try await ran(["blacklist", "add", origin.url("/cached")] + cache)
        // smart: the cache is asked first.
        #expect(outcomes(try await ran(["run", one] + cache + net).stdout) == ["hit:1"])
        #expect(origin.requestCount("/cached") == 1)

        let names = ["ok", "404", "503", "cached", "healed", "bad", "reset", "stall", "ok"]
        let all = list(names.map { origin.url("/\($0)") } + [refused], "all.txt")
        let sd3 = ["--compat", "sd3"] + cache + net
        let run = try await ran(["run", all] + sd3, exits: 3).stdout
        #expect(
            run.contains(#""total":10,"finished":10,"skipped":8,"didFinish":{"totalCount":2,"skippedCount":8}"#),
            "\(run)")
        #expect(
            outcomes(run) == [
                "downloaded:1", "hit:1", "blacklisted:1", "httpError:3", "timeout:1", "connect:1", "badImage:1",
                "truncated:1",
            ])
        #expect(
            run.contains(
                #""blacklist":"sd3","blacklist_ttl_seconds":{"404":0,"410":0,"451":0,"badImage":0,"poison":0},"#)
                && run.contains(#""compat":"sd3"}"#))
        func failed() async throws -> [String] {
            try await ran(["blacklist", "list"] + cache).stdout.split(separator: "\n").map {
                String($0.prefix { $0 != " " })
            }
        }
        let listed = ["404", "503", "bad", "cached", "healed", "reset"].map { origin.url("/\($0)") }
        #expect(try await failed() == listed)
        // Beyond its download an image may be the witness of failures, of which the first bytes are asked for.
        func downloads(_ path: String) -> Int {
            origin.requests.count { $0.path == path && $0.header("Range") == nil }
        }
        #expect(downloads("/cached") == 1 && downloads("/ok") == 1)

        // Everything listed: no request, and the list stays what it is.
        let again = list(listed, "again.txt")
        let before = origin.requestCount()
        let second = try await ran(["run", again] + sd3, exits: 3).stdout
        #expect(outcomes(second) == ["blacklisted:6"] && second.contains(#""finished":6,"skipped":6"#))
        #expect(second.contains(#""didFinish":{"totalCount":0,"skippedCount":6}"#))
        #expect(origin.requestCount() == before)
        #expect(try await failed() == listed)

        origin.route("/healed", png(7))
        let third = try await ran(["run", again, "--retry-failed"] + sd3, exits: 3).stdout
        #expect(
            outcomes(third) == ["downloaded:1", "hit:1", "httpError:2", "badImage:1", "truncated:1"], "\(third)")
        #expect(try await failed() == listed.filter { $0 != origin.url("/healed") })
        // So late in its job that the cache is asked only when it is its turn.
        let late = list((0..<1_088).map { origin.url("/none\($0)") } + [origin.url("/cached")], "late.txt")
        let fourth = try await ran(["run", late, "--retry-failed"] + sd3, exits: 3).stdout
        #expect(outcomes(fourth) == ["hit:1", "httpError:1088"], "\(fourth)")
        #expect(try await failed().contains(origin.url("/cached")))
        #expect(downloads("/cached") == 1)
        #expect(try await ran(["fsck"] + cache).stdout == "6 batches, everything agrees\n")
    }

    @Test("A cancelled batch has a didFinish, and with --compat sd3 it has none")
    func cancelled() async throws {
        let redis = try await RedisServer()
        let at = ["--redis", redis.url]
        let file = list(["http://127.0.0.1:1/a", "http://127.0.0.1:1/b"], "urls.txt")
        try await ran(["submit", file, "--name", "plain"] + at)
        try await ran(["submit", file, "--name", "original", "--compat", "sd3"] + at)
        for name in ["plain", "original"] { try await ran(["cancel", name, "--yes"] + at) }
        let plain = try await ran(["status", "plain", "--json"] + at).stdout
        #expect(plain.contains(#""skipped":2,"didFinish":{"totalCount":0,"skippedCount":2}"#), "\(plain)")
        #expect(plain.contains(#""compat":null}"#))
        let original = try await ran(["status", "original", "--json"] + at).stdout
        #expect(original.contains(#""skipped":2,"didFinish":null,"#), "\(original)")
        // A retry of it is one of the same kind.
        try await ran(["retry", "original"] + at)
        #expect(try await ran(["status", "original.2", "--json"] + at).stdout.contains(#""compat":"sd3"}"#))
    }

    @Test("A batch cancels the one before of the same user and host, or of the same slot, and names it")
    func cancelsPrevious() async throws {
        let redis = try await RedisServer()
        func submit(_ name: String, _ options: [String] = []) async throws -> String {
            let file = list(["http://127.0.0.1:1/\(name)"], "\(name).txt")
            let child = try await ran(
                ["submit", file, "--name", name, "--compat", "sd3", "--redis", redis.url] + options)
            return child.stderr
        }
        #expect(try await !submit("one").contains("cancelled"))
        #expect(try await !submit("other", ["--slot", "home"]).contains("cancelled"))
        #expect(try await submit("two").contains("cancelled one, which had the slot sharedImagePrefetcher-"))
        #expect(try await submit("third", ["--slot", "home"]).contains("cancelled other, which had the slot home"))
        let at = ["--redis", redis.url]
        let two = try await ran(["status", "two", "--json"] + at).stdout
        #expect(two.contains(#""state":"running""#), "\(two)")
    }

    @Test("run goes on with an unfinished batch of the same kind only, and says what differs")
    func differs() async throws {
        let cache = ["--cache", folder.path("cache")]
        let file = list(["http://127.0.0.1:1/a"], "urls.txt")
        try await ran(["run", file] + cache + net, exits: 3)
        try await ran(["submit", file, "--name", "mine", "--tries", "1", "--timeout", "2s"] + cache)
        let child = try await ran(["run", file, "--compat", "sd3"] + cache + net, exits: 3)
        #expect(
            child.stderr.contains(
                "mine of the same list is unfinished with other settings (--ignore-robots-tag yes, was no; --compat sd3, was not given; --blacklist sd3, was smart; --blacklist-ttl 0s, was 404=7d,410=30d,451=30d,badImage=1d,poison=7d)"
            ), "\(child.stderr)")
        for words in [["--blacklist", "smart"], ["--blacklist-ttl", "1h"]] {
            let wrong = try await ran(["submit", file, "--compat", "sd3"] + words + cache, exits: 64)
            #expect(wrong.stderr.contains("--compat sd3") && wrong.stderr.contains(words.joined(separator: " ")))
        }
    }
}
