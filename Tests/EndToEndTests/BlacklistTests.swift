import Glibc
import Origin
import TestSupport
import Testing
import WebImage

/// `blacklist`, `why`, `workers` and `cache ls`, as a user runs them.
@Suite("The failed URLs and what else is known", .timeLimit(.minutes(5)))
struct BlacklistTests: FolderSuite {
    let folder = TemporaryDirectory()

    @Test("add, list and rm work on the same list, and bad lines are named")
    func editing() async throws {
        let redis = try await RedisServer(appendOnly: true)
        let at = ["--redis", redis.url]
        try await ran(["blacklist"] + at, says: "the blacklist is empty")
        let add = try await ran(
            ["blacklist", "add", "http://h/b", "nope", "http://h/a", "http://h/b"] + at,
            says: "argument 2 is not a URL: nope\n")
        #expect(add.stdout == "added 2 URLs; on the list already: 1; no URL: 1\n")
        let listed = try await ran(["blacklist"] + at)
        #expect(listed.stdout == "http://h/a  by hand\nhttp://h/b  by hand\n")
        let bad = (1...150).map { "bad\u{1B} \($0)" }
        let piped = try await ran(
            ["blacklist", "add", "-"] + at, says: "line 3 is not a URL: bad\\x1b 1\n",
            input: Array((["# by hand", " http://h/c\r"] + bad + ["", "http://h/a"]).joined(separator: "\n").utf8))
        #expect(piped.stdout == "added 1 URL; on the list already: 1; no URL: 150\n")
        #expect(piped.stderr.split(separator: "\n").count == 101)
        #expect(piped.stderr.hasSuffix("and 50 more lines that are not URLs\n") && !piped.stderr.contains("\u{1B}"))

        let other = at + ["--queue", "other"]
        let urls = Array("http://h/a\nhttp://h/b\nhttp://h/c\n".utf8)
        #expect(try await ran(["blacklist", "add", "-"] + other, input: urls).stdout == "added 3 URLs\n")
        #expect(
            try await ran(["blacklist", "add", "-"] + other, input: urls).stdout
                == "added 0 URLs; on the list already: 3\n")

        let removed = try await ran(["blacklist", "rm", "http://h/b", "http://h/none"] + at)
        #expect(removed.stdout == "removed 1 URL; not on the list: 1\n")
        let rest = try await ran(["blacklist", "rm", "-"] + at, input: Array("http://h/a\nhttp://h/c\n".utf8))
        #expect(rest.stdout == "removed 2 URLs\n")
        try await ran(["blacklist"] + at, says: "the blacklist is empty")
        try await ran(["blacklist", "add", "-"] + at, exits: 65, says: "has no URL", input: [])
        let empty = try await ran(["blacklist", "add", "-", "--allow-empty"] + at, input: [])
        #expect(empty.stdout == "added 0 URLs\n")
        // Nothing of the other queue went along.
        #expect(try await ran(["blacklist", "list", "--json"] + other).stdout.split(separator: "\n").count == 3)
    }

    @Test("What is no list is refused with its exit code, and changes nothing")
    func refused() async throws {
        let redis = try await RedisServer(appendOnly: true)
        let at = ["--redis", redis.url]
        try await ran(
            ["blacklist", "add", "-"] + at, exits: 65, says: "no URL among 1 line, nothing was added",
            input: Array(#"{"page":"http://h/a"}"#.utf8))
        let objects = try await ran(
            ["blacklist", "add", "-"] + at + ["--queue", "other"], input: Array(#"{"url":"http://h/a"}"#.utf8))
        #expect(objects.stdout == "added 1 URL\n")
        try await ran(["blacklist", "add", "a", "b"] + at, exits: 65, says: "no URL among 2 lines")
        try await ran(["blacklist", "add", "http://h/a"] + at)
        try await ran(["blacklist", "rm"] + at, exits: 64)
        try await ran(["blacklist", "rm", "--all", "http://h/a"] + at, exits: 64, says: "--all removes all URLs")
        for gone in ["export", "import", "set", "clear"] { try await ran(["blacklist", gone] + at, exits: 64) }
        try await ran(["blacklist", "lst"] + at, exits: 64)
        try await ran(["blaklist"] + at, exits: 64, says: "did you mean 'prefetch-coord blacklist'?")
        try await ran(["wrokers"] + at, exits: 64, says: "did you mean 'prefetch-coord workers'?")
        try await ran(["blacklist", "--redis", "redis://127.0.0.1:1"], exits: 69, says: "Connection refused")
        #expect(try await ran(["blacklist"] + at).stdout == "http://h/a  by hand\n")
    }

    @Test("rm --all asks on a terminal, and wants --yes elsewhere")
    func clear() async throws {
        let redis = try await RedisServer(appendOnly: true)
        let at = ["--redis", redis.url]
        try await ran(["blacklist", "add", "http://h/a", "http://h/b"] + at)
        try await ran(
            ["blacklist", "rm", "--all"] + at, exits: 78,
            says:
                "error: blacklist rm would remove 2 URLs, all of the blacklist; standard input is not a terminal, so it cannot ask"
                + "\nhint: add --yes to do it without a question")
        /// Answers on a terminal.
        func answer(_ text: String) async throws -> (ChildProcess.Status, String) {
            let command = "\(builtProduct("prefetch-coord")) blacklist rm --all --redis \(redis.url)"
            let child = try await ChildProcess(
                "/usr/bin/script", ["-qec", command, "/dev/null"], input: Array("\(text)\n".utf8))
            return (await child.wait(), child.stdout)
        }
        let (no, said) = try await answer("n")
        #expect(
            no == .exited(75) && said.contains("remove 2 URLs, all of the blacklist")
                && said.contains("nothing was changed"))
        #expect(try await ran(["blacklist"] + at).stdout == "http://h/a  by hand\nhttp://h/b  by hand\n")
        let (yes, done) = try await answer("y")
        #expect(yes == .exited(0) && done.contains("removed 2 URLs"), "\(done)")
        #expect(try await ran(["blacklist"] + at).stdout == "")
        try await ran(["blacklist", "add", "http://h/a"] + at)
        #expect(try await ran(["blacklist", "rm", "--all", "--yes"] + at).stdout == "removed 1 URL\n")
        #expect(try await ran(["blacklist", "rm", "--all"] + at).stdout == "the blacklist is empty\n")
    }

    @Test("why tells of the list, the cache and the newest batches, and what would help")
    func why() async throws {
        let origin = try OriginServer()
        let image = GeneratedImage.png(seed: 1, width: 9, height: 7)
        origin.route("/a?x=1&y=2", OriginResponse(body: image))
        origin.route("/503", OriginResponse(status: 503))
        origin.setFallback { _ in OriginResponse(status: 404) }
        let cache = folder.path("cache")
        let at = ["--cache", cache]
        let (good, gone, busy) = (origin.url("/a?x=1&y=2"), origin.url("/gone"), origin.url("/503"))
        let net = ["--allow-net", "127.0.0.0/8", "--tries", "2", "-q", "-n", "1"]
        try await ran(["run", list([good, gone, busy, "nope", gone]), "--name", "mine"] + at + net, exits: 3)

        let found = try await ran(["why", good] + at)
        let lines = found.stdout.split(separator: "\n").map(String.init)
        try #require(lines.count == 4)
        #expect(lines[0] == good && lines[1] == "  not on the blacklist")
        #expect(lines[2].hasPrefix("  in the cache: \(cache)/v1/"))
        #expect(lines[2].contains(", \(image.count) bytes, png 9x7, passed decode, stored 20"))
        #expect(lines[2].contains("Z, sha256 ") && found.stderr == "")
        #expect(lines[3] == "  looked at 1 batch of queue 'default'")

        let listed = try await ran(["why", gone] + at)
        #expect(listed.stdout.contains("\n  on the blacklist: httpError 404, listed "))
        #expect(
            listed.stdout.contains(", by mine\n")
                && listed.stdout.contains("\n    next request: by a batch that has it after 20"))
        #expect(listed.stdout.contains("\n  not in the cache \(cache)\n"))
        #expect(
            listed.stdout.contains("\n  line 2 of mine (done, 20") && listed.stdout.contains("\n  line 5 of mine (done")
        )
        // Its commands work as printed.
        let commands = listed.stderr.split(separator: "\n").filter {
            $0.contains(": ") && $0.contains("prefetch-coord")
        }
        .map { String($0.split(separator: ":   ")[1].drop { $0 == " " }) }
        try #require(commands.count == 2 && commands[1].contains(" retry mine "), "\(listed.stderr)")
        let shell = try await ChildProcess("/bin/sh", ["-c", commands[0]])
        #expect(await shell.wait() == .exited(0))
        #expect(shell.stdout == "removed 1 URL\n")
        #expect(try await ran(["why", gone] + at).stdout.contains("\n  not on the blacklist\n"))

        let skipped = try await ran(["why", busy] + at)
        #expect(skipped.stdout.contains("): httpError 503, 2 tries, "))
        #expect(skipped.stderr.contains(" retry mine --cache ") && !skipped.stderr.contains("blacklist rm"))
        let invalid = try await ran(["why", "nope"] + at)
        #expect(invalid.stdout.contains("line 4 of mine") && invalid.stderr == "")

        try await ran(["blacklist", "add", good] + at)
        let both = try await ran(["why", good, "--json"] + at)
        #expect(both.stdout.hasPrefix(#"{"v":1,"url":"\#(good)","known":true,"listed":{"outcome":null,"#))
        #expect(
            both.stdout.contains(
                #","state":"listed"},"cache":"\#(cache)","cached":{"path":"\#(cache)/v1/"#))
        #expect(
            both.stdout.contains(
                #""bytes":\#(image.count),"format":"png","width":9,"height":7,"orientation":1,"frames":1,"alpha":false,"color_space":"rgb","level":"decode","#
            ))
        #expect(both.stdout.hasSuffix(#""skipped":[],"batches_read":1,"batches":1}"# + "\n"))
        #expect(try await ran(["why", good] + at).stdout.contains("    a hit all the same with --blacklist smart"))
        let json = try await ran(["why", busy, "--json"] + at)
        #expect(
            json.stdout.contains(
                #""cached":null,"key":null,"elsewhere":null,"skipped":[{"batch":"mine","state":"done","line":3,"outcome":"httpError","http_status":503,"tries":2,"#
            ), "\(json.stdout)")

        // By the key the batch had, whatever key is asked for besides.
        let key = try await ran(["why", good, "--cache-key", "without-query", "--json"] + at)
        #expect(key.stdout.contains(#""cached":{"path":"\#(cache)/v1/"#) && key.stdout.contains(#""key":"\#(good)""#))
        try await ran(
            ["why", "http://h/none"] + at, exits: 66,
            says: "error: nothing is known of http://h/none: it is not on the blacklist of queue 'default'")
        let nothing = try await ran(["why", "http://h/none", "--json"] + at, exits: 66)
        #expect(nothing.stdout.hasPrefix(#"{"v":1,"url":"http://h/none","known":false,"listed":null,"#))
        try await ran(
            ["why", busy, "--batches", "0"] + at, exits: 66, says: "skipped nor stored by the newest 0 of 1 batch")
    }

    @Test("workers tells how to start one, and shows one that was killed as overdue")
    func workers() async throws {
        let redis = try await RedisServer(appendOnly: true)
        let at = ["--redis", redis.url]
        let none = try await ran(["workers"] + at)
        #expect(none.stdout == "no workers\n")
        #expect(none.stderr == "start one: prefetch-worker --redis \(redis.url) --cache ./cache\n")
        let running = try await ChildProcess(
            builtProduct("prefetch-worker"), at + ["--cache", folder.path("cache"), "--lease", "1s"])
        while !(try await ran(["workers"] + at).stdout.contains(":\(running.pid)  running")) {
            try #require(running.isRunning, "\(running.stderr)")
        }
        running.signal(SIGKILL)
        await running.wait()
        // Nobody reaps it: it stays overdue.
        while !(try await ran(["workers"] + at).stdout.contains(":\(running.pid)  overdue")) {}
        // In a cache of its own, workers come with run.
        let own = folder.path("own")
        try await ran(["run", list(["http://none.test/"]), "--options", "fromCacheOnly", "--cache", own], exits: 3)
        #expect(
            try await ran(["workers", "--cache", own]).stderr.hasSuffix(" run urls.txt --cache \(own)\n"))
    }

    @Test("cache ls and du go through the cache without a Redis")
    func cache() async throws {
        let origin = try OriginServer()
        let images = (0..<5).map { index in
            index < 3
                ? GeneratedImage.png(seed: UInt64(index), width: 30 + index, height: 20)
                : GeneratedImage.jpeg(seed: UInt64(index), width: 40, height: 30)
        }
        for (index, image) in images.enumerated() { origin.route("/\(index)", OriginResponse(body: image)) }
        let cache = folder.path("cache")
        let at = ["--cache", cache]
        try await ran(
            ["run", list((0..<5).map { origin.url("/\($0)") }), "--allow-net", "127.0.0.0/8", "-q"] + at)
        let listing = try await ran(["cache", "ls"] + at)
        let lines = listing.stdout.split(separator: "\n").map(String.init)
        #expect(lines.count == 5 && lines == lines.sorted() && listing.stderr == "")
        #expect(lines.count { $0.contains(", png 3") && $0.contains("x20, passed decode, stored 20") } == 3)
        for image in images { #expect(lines.contains { $0.contains(", \(image.count) bytes, ") }) }
        let json = try await ran(["cache", "ls", "--json"] + at)
        #expect(json.stdout.split(separator: "\n").count == 5)
        #expect(
            json.stdout.contains(
                #""format":"jpeg","width":40,"height":30,"orientation":1,"frames":1,"alpha":false,"color_space":"rgb","level":"decode","sha256":""#
            ))
        let sizes = images.map(\.count)
        let usage = try await ran(["cache", "ls", "--summary", "--json"] + at)
        #expect(usage.stdout.hasPrefix(#"{"v":1,"count":5,"bytes":\#(sizes.reduce(0, +)),"allocated_bytes":"#))
        #expect(usage.stdout.contains(#""png":{"count":3,"bytes":\#(sizes[..<3].reduce(0, +)),"#))
        #expect(usage.stdout.contains(#""jpeg":{"count":2,"bytes":\#(sizes[3...].reduce(0, +)),"#))
        let words = try await ran(["cache", "ls", "--summary"] + at)
        #expect(words.stdout.contains("\nall                5  ") && words.stdout.contains("\npng                3  "))

        // What cannot be read is named, and the rest is shown all the same.
        let path = String(lines[2].prefix { $0 != "," })
        #expect(unlink(path) == 0 && symlink("/etc/passwd", path) == 0)
        let rest = try await ran(["cache", "ls"] + at, exits: 74, says: "\(path): ")
        #expect(rest.stdout.split(separator: "\n").count == 4)
        try await ran(["cache", "ls", "--summary"] + at, exits: 74, says: "\(path): ")
        try await ran(["cache", "ls", "--cache", folder.path("none")], exits: 66, says: "there is no folder")
        let empty = TemporaryDirectory()
        try await ran(["cache", "ls", "--cache", empty.path], exits: 66, says: "there is no cache in")
        _ = try DiskCache(directory: empty.path)
        #expect(try await ran(["cache", "ls", "--cache", empty.path], says: "there is no image in").stdout == "")
        let nothing = try await ran(["cache", "ls", "--summary", "--cache", empty.path])
        #expect(nothing.stdout.hasSuffix("\nall                0    0 B      0 B\n"))
    }
}
