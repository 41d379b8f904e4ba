import Foundation
import Glibc
import Origin
import TestSupport
import Testing

/// `export`, `run --manifest`, `run --out` and `rm`, as a user runs them.
@Suite("Taking results out", .timeLimit(.minutes(5)))
struct ExportTests: FolderSuite {
    let folder = TemporaryDirectory()
    private func quoted(_ word: String) -> String { "'" + word.replacing("'", with: "'\\''") + "'" }

    private func origin(good: Int) throws -> OriginServer {
        let origin = try OriginServer()
        for index in 0..<good {
            let body =
                index % 2 == 0
                ? GeneratedImage.png(seed: UInt64(index), width: 16, height: 12)
                : GeneratedImage.jpeg(seed: UInt64(index), width: 24, height: 8)
            origin.route("/\(index)", OriginResponse(body: body))
            origin.route("/\(index)?v=1", OriginResponse(body: body))
        }
        origin.setFallback { _ in OriginResponse(status: 404) }
        return origin
    }

    private let net = ["--allow-net", "127.0.0.0/8", "-q", "-n", "1"]

    @Test("A manifest has every line in the order of the list, and its paths open")
    func manifest() async throws {
        let origin = try origin(good: 4)
        let file = list(
            ["# a comment", origin.url("/0"), origin.url("/9"), "", "not a url", origin.url("/1"), origin.url("/0")])
        let cache = folder.path("cache")
        let manifest = folder.path("m.jsonl")
        try await ran(
            ["run", file, "--cache", cache, "--manifest", manifest] + net, exits: 3, says: "5 lines, 3 with an")
        let lines = String(decoding: folder.read("m.jsonl") ?? [], as: UTF8.self).split(separator: "\n")
        #expect(lines.count == 5)
        let png = GeneratedImage.png(seed: 0, width: 16, height: 12)
        #expect(lines[0].hasPrefix(#"{"line":2,"url":"\#(origin.url("/0"))","outcome":""#))
        #expect(lines[0].contains(#","bytes":\#(png.count),"sha256":""#))
        #expect(
            lines[0].hasSuffix(
                #","format":"png","width":16,"height":12,"level":"decode","orientation":1,"frames":1,"alpha":false,"color_space":"rgb","http_status":null,"tries":null,"ended":null,"host":null}"#
            ))
        let path = String(lines[0].split(separator: "\"path\":\"")[1].prefix { $0 != "\"" })
        #expect(readFile(path) == png)
        let nothing =
            #""path":null,"bytes":null,"sha256":null,"format":null,"width":null,"height":null,"level":null,"orientation":null,"frames":null,"alpha":null,"color_space":null,"http_status":"#
        #expect(
            lines[1].hasPrefix(
                #"{"line":3,"url":"\#(origin.url("/9"))","outcome":"httpError",\#(nothing)404,"tries":1,"ended":""#))
        #expect(
            lines[2].hasPrefix(
                #"{"line":5,"url":"not a url","outcome":"invalidURL",\#(nothing)null,"tries":0,"ended":""#))
        #expect(
            lines[3].hasSuffix(
                #","format":"jpeg","width":24,"height":8,"level":"decode","orientation":1,"frames":1,"alpha":false,"color_space":"rgb","http_status":null,"tries":null,"ended":null,"host":null}"#
            ))
        #expect(lines[4].hasPrefix(#"{"line":7,"#) && lines[4].contains(path))

        // The same afterwards, in three ways; sha256sum agrees.
        let text = String(decoding: folder.read("m.jsonl") ?? [], as: UTF8.self)
        #expect(try await ran(["export", "--format", "jsonl", "--cache", cache]).stdout == text)
        #expect(
            try await ran(["export", "urls-", "--format", "jsonl", "--output", "-", "--cache", cache]).stdout == text)
        try await ran(["export", "--format", "jsonl", "urls-", "--cache", cache, "-o", folder.path("again")])
        #expect(folder.read("again") == folder.read("m.jsonl"))
        let sum = try await shell("sha256sum \(quoted(path))")
        #expect(lines[0].contains(#""sha256":"\#(sum.stdout.prefix(64))""#))

        // An image that is gone has no path; the outcome is the batch's.
        #expect(unlink(path) == 0)
        let gone = try await ran(["export", "--format", "jsonl", "--cache", cache])
        #expect(
            gone.stdout.split(separator: "\n")[0].hasSuffix(
                nothing + #"null,"tries":null,"ended":null,"host":null}"#))
        // The list has moved, and nobody has kept a copy of it.
        TemporaryDirectory.remove(TemporaryDirectory.runState(of: cache) + "/lists")
        #expect(rename(file, folder.path("moved.txt")) == 0)
        let export = ["export", "urls-", "--format", "jsonl", "--cache", cache]
        try await ran(export, exits: 66, says: "is not there any more, and there is no copy of it")
        _ = list(["http://changed/"])
        try await ran(export, exits: 65, says: "any more, and there is no copy of it")
        #expect(rename(folder.path("moved.txt"), file) == 0)
        #expect(try await ran(export).stdout == gone.stdout)
        #expect(folder.contents().filter { $0.contains(".tmp") } == [])
    }

    @Test("A folder gets hard links by line number and format, twice the same, and nothing is overwritten")
    func files() async throws {
        let origin = try origin(good: 4)
        let file = list(["#", origin.url("/0"), origin.url("/1"), origin.url("/9"), origin.url("/2")])
        let cache = folder.path("cache")
        let out = folder.path("out/images")
        let run = try await ran(["run", file, "--cache", cache, "--out", out] + net, exits: 3)
        #expect(run.stderr.contains("\(out): 3 images, 3 of them new; 1 line without one"))
        let names = ["000002.png", "000003.jpg", "000005.png"]
        let paths = names.map { "out/images/\($0)" }
        #expect(folder.contents().filter { $0.hasPrefix("out/i") } == ["out/images/"] + paths)
        #expect(folder.read("out/images/000003.jpg") == GeneratedImage.jpeg(seed: 1, width: 24, height: 8))
        var status = stat()
        #expect(stat(out + "/000002.png", &status) == 0 && status.st_nlink == 2)
        try await ran(["export", "--format", "files", "--out", out, "--cache", cache], says: "3 images, 0 of them new")
        // Somebody's own file is in the way.
        unlink(out + "/000003.jpg")
        folder.write([1, 2, 3], to: "out/images/000003.jpg")
        try await ran(
            ["export", "urls-", "--format", "files", "--out", out, "--cache", cache], exits: 73,
            says: "000003.jpg is there already")
        #expect(folder.read("out/images/000003.jpg") == [1, 2, 3])
        // Another file system.
        let other = TemporaryDirectory(in: "/dev/shm")
        let copied = try await ran(["export", "--format", "files", "--out", other.path, "urls-", "--cache", cache])
        #expect(copied.stderr.contains("note: \(other.path) is on another file system than the cache"))
        #expect(other.contents() == names)
        let again = try await ran(
            ["export", "--format", "files", "--out", other.path, "--cache", cache], says: "0 of them new")
        #expect(!again.stderr.contains("another file system"))
    }

    @Test("A running batch can be exported: open URLs have no outcome")
    func running() async throws {
        let redis = try await RedisServer()
        let origin = try origin(good: 2)
        let cache = folder.path("cache")
        let submit = try await ran(["submit", list([origin.url("/0"), origin.url("/1")]), "--redis", redis.url])
        mkdir(cache, 0o700)
        let open = try await ran(["export", "--format", "jsonl", "--redis", redis.url, "--cache", cache])
        #expect(open.stdout.split(separator: "\n").count == 2)
        #expect(
            open.stdout.hasPrefix(#"{"line":1,"url":"\#(origin.url("/0"))","outcome":null,"path":null,"bytes":null"#))
        #expect(open.stderr.contains("2 URLs of \(submit.stdout.dropLast()) have no outcome yet"))
        // From a folder where no cache of ours is.
        let program = quoted(builtProduct("prefetch-coord"))
        let nowhere = try await shell(
            "cd \(quoted(folder.path)) && mkdir x && cd x && \(program) export --format jsonl --redis \(redis.url)")
        #expect(await nowhere.wait() == .exited(78) && nowhere.stderr.contains("hint: name the cache: --cache DIR"))
    }

    @Test("What cannot be written is said before anything starts")
    func refusedAtOnce() async throws {
        let origin = try origin(good: 1)
        let file = list([origin.url("/0")])
        let cache = folder.path("cache")
        folder.write([1], to: "file")
        let cases: [([String], Int32, String)] = [
            (
                ["--manifest", folder.path("none/m.jsonl")], 73,
                "cannot write \(folder.path("none/m.jsonl")): No such file"
            ),
            (["--manifest", folder.path], 73, "Is a directory"),
            (["--manifest", "/proc/m.jsonl"], 73, "cannot write /proc/m.jsonl"),
            (["--manifest", "-"], 64, "--manifest needs a file"),
            (["--out", folder.path("file")], 73, "cannot put files into \(folder.path("file")): Not a directory"),
            (["--out", "/proc/none"], 73, "cannot put files into /proc/none"),
            (["--out", ""], 64, "--out needs a folder"),
        ]
        for (words, code, text) in cases {
            try await ran(["run", file, "--cache", cache] + net + words, exits: code, says: text)
        }
        #expect(access(cache, F_OK) != 0 && origin.requestCount() == 0)
        #expect(folder.contents() == ["file", "urls.txt"])
    }

    @Test(
        "A disk that is full at the end is 74, the batch is done, and the hint's command writes it later",
        .enabled(if: getuid() == 0))
    func fullAtTheEnd() async throws {
        let small = TemporaryDirectory()
        guard mount("tmpfs", small.path, "tmpfs", 0, "size=4k") == 0 else {
            // A container without the right to mount.
            return
        }
        defer { umount2(small.path, Int32(MNT_DETACH)) }
        let origin = try origin(good: 40)
        let file = list((0..<40).map { origin.url("/\($0)") })
        let cache = folder.path("my cache")
        let manifest = small.path("a 'm'.jsonl")
        let run = try await ran(["run", file, "--cache", cache, "--manifest", manifest] + net, exits: 74)
        #expect(run.stderr.contains("cannot write \(manifest): No space left on device"))
        #expect(run.stdout.contains("finished 40 of 40: 40 images, 0 skipped"))
        #expect(small.contents() == [])
        #expect(mount("tmpfs", small.path, "tmpfs", UInt(MS_REMOUNT), "size=1m") == 0)
        let hint = try #require(run.stderr.split(separator: "\n").last { $0.hasPrefix("hint: ") })
        let command = String(try #require(hint.split(separator: "write it later: ").last))
        let later = try await shell(command)
        #expect(await later.wait() == .exited(0), "\(command): \(later.stderr)")
        #expect(small.read("a 'm'.jsonl")?.count { $0 == UInt8(ascii: "\n") } == 40)
        #expect(small.contents() == ["a 'm'.jsonl"])
    }

    @Test("The summary's commands work as printed, whatever the cache is called")
    func closingCommands() async throws {
        let origin = try origin(good: 3)
        for (name, urls, rule) in [
            ("plain", 3, "url"), ("it's a \"cache\" $HOME `x` (1)", 4, "without-query"),
            ("ünïcode & more;*", 3, "s/v=1/a 'b/"),
        ] {
            let file = list((0..<urls).map { origin.url("/\($0)?v=1") })
            let cache = folder.path(name)
            let run = try await ran(
                ["run", file, "--cache", cache, "--cache-key", rule] + net.filter { $0 != "-q" },
                exits: urls == 4 ? 3 : 0)
            let failed = urls == 4 ? ["failed URLs:    "] : []
            let titles = failed + ["named files:    ", "path of a URL:  "]
            let lines = run.stdout.split(separator: "\n").suffix(titles.count).map(String.init)
            for (line, title) in zip(lines, titles) {
                try #require(line.hasPrefix(title))
                var command = String(line.dropFirst(title.count))
                let images = folder.path("images of \(urls) by \(rule.count)")
                command = command.replacing(" URL ", with: " \(quoted(origin.url("/1?v=1"))) ")
                    .replacing(" ./images ", with: " \(quoted(images)) ")
                let child = try await ChildProcess("/bin/sh", ["-c", command])
                #expect(await child.wait() == .exited(0), "\(command): \(child.stderr)")
                switch title.prefix(3) {
                case "pat":
                    let path = String(child.stdout.dropLast())
                    #expect(readFile(path) == GeneratedImage.jpeg(seed: 1, width: 24, height: 8), "\(command)")
                case "nam":
                    let names = try FileManager.default.contentsOfDirectory(atPath: images)
                    #expect(names.sorted() == ["000001.png", "000002.jpg", "000003.png"], "\(command)")
                case "fai": #expect(child.stdout.hasPrefix("4: \(origin.url("/3?v=1"))  httpError 404"), "\(command)")
                default: Issue.record("\(title)")
                }
            }
        }
    }

    @Test("A reader that leaves ends the output quietly; a full disk behind it is 74")
    func closedAndFull() async throws {
        let cache = folder.path("cache")
        let file = list((0..<6000).map { "https://example.org/a/long/enough/path/to/fill/a/pipe/\($0).jpg" })
        try await ran(["run", file, "--cache", cache, "--options", "fromCacheOnly"] + net, exits: 3)
        let program = quoted(builtProduct("prefetch-coord"))
        for words in ["export --format jsonl", "failures", "failures --json"] {
            let head = try await shell("set -o pipefail; \(program) \(words) --cache \(quoted(cache)) | head -1")
            #expect(await head.wait() == .exited(0), "\(words): \(head.stderr)")
            #expect(head.stdout.split(separator: "\n").count == 1 && head.stderr == "", "\(words): \(head.stderr)")
            let full = try await shell("\(program) \(words) --cache \(quoted(cache)) > /dev/full")
            #expect(await full.wait() == .exited(74), "\(words)")
            #expect(full.stderr.hasPrefix("error: cannot write the result: No space left"), "\(words): \(full.stderr)")
        }
        // Also where the batch itself is no success.
        let full = try await shell(
            "\(program) run \(quoted(file)) --cache \(quoted(cache)) --options fromCacheOnly -q -n 1 >/dev/full")
        #expect(await full.wait() == .exited(74), "\(full.stderr)")
        try await ran(
            ["export", "--format", "jsonl", "--output", "/dev/full", "--cache", cache], exits: 74, says: "No space")
    }

    @Test("A batch that is not there is named, with where it is")
    func unknown() async throws {
        let redis = try await RedisServer()
        let file = list(["http://127.0.0.1:1/a"])
        for queue in ["one", "two"] {
            try await ran(["submit", file, "--redis", redis.url, "--queue", queue, "--name", "mine-\(queue)"])
        }
        try await ran(["submit", file, "--redis", redis.url, "--queue", "two", "--name", "mine-other"])
        let at = ["--redis", redis.url, "--cache", folder.path]
        for command in [["export", "--format", "jsonl"], ["retry"], ["failures"], ["status"], ["rm"]] {
            let at = ["export"].contains(command[0]) ? at : ["--redis", redis.url]
            func words(_ name: String, _ queue: String) -> [String] {
                (command[0] == "export" ? ["export", name, "--format", "jsonl"] : command + [name]) + at + [
                    "--queue", queue,
                ]
            }
            try await ran(
                words("nope", "one"), exits: 66, says: "error: there is no batch 'nope'\nhint: the newest are mine-one")
            try await ran(
                words("mine-one", "two"), exits: 66,
                says:
                    "error: there is no batch 'mine-one'\nhint: this is queue 'two', and queue 'one' has one: add --queue"
            )
            try await ran(
                words("mine-", "two"), exits: 66, says: "is the beginning of 2 batches\nhint: give more of it: mine-")
            try await ran(
                words("x", "three"), exits: 66, says: "there is none at all in queue 'three'; --queue names another")
        }
        for words in [
            ["export"], ["export", "--format", "xlsx"], ["export", "--format", "files"],
            ["export", "a", "--format", "jsonl", "b"],
            ["export", "--format", "jsonl", "--out", "d"], ["export", "--format", "html", "--merge", "m"],
        ] {
            try await ran(words + at, exits: 64)
        }
    }

    @Test("rm takes batches out of Redis and leaves their images")
    func remove() async throws {
        let redis = try await RedisServer()
        let file = list(["http://127.0.0.1:1/a"])
        let at = ["--redis", redis.url]
        try await ran(["submit", file, "--name", "a"] + at)
        try await ran(
            ["rm", "a", "--yes"] + at, exits: 78, says: "a is running and was not removed\nhint: cancel it")
        try await ran(["cancel", "a", "--yes"] + at)
        try await ran(["retry", "a"] + at)
        try await ran(["cancel", "a.2", "--yes"] + at)
        try await ran(
            ["rm", "a", "--yes"] + at, exits: 78, says: "a.2 retries what a skipped, so a was not removed")
        try await ran(["rm", "a.2", "a"] + at, exits: 78, says: "rm would remove a.2, a from Redis")
        try await ran(["submit", file, "--name", "b"] + at)
        let removed = try await ran(["rm", "a", "a.2", "--yes"] + at)
        #expect(removed.stdout == "removed a.2\nremoved a\n")
        let status = try await ran(["status"] + at)
        #expect(
            status.stdout.hasPrefix("b  running") && !status.stdout.contains("a.2") && !status.stdout.contains("\na "))
        try await ran(["rm", "a", "--yes"] + at, exits: 66, says: "there is no batch 'a'")
    }
}
