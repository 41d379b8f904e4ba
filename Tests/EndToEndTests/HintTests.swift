import TestSupport
import Testing

@Suite("What bad input gets", .timeLimit(.minutes(5)))
struct HintTests: CommandSuite {
    /// A command in an empty folder, what it prints, and how it ends.
    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var words: [String]
        /// Files of the folder.
        var files: [String: String] = [:]
        var environment: [String: String] = [:]
        var code: Int32
        /// Each is a part of what it prints.
        var says: [String]

        var testDescription: String { name }
    }

    private static let cases = [
        Case(
            name: "an empty list", words: ["run", "empty.txt"], files: ["empty.txt": ""], code: 65,
            says: ["error: empty.txt has no URL", "hint: what wrote it may have failed"]),
        Case(
            name: "run without redis-server", words: ["run", "one.txt"], files: ["one.txt": "http://a.test/1.png\n"],
            environment: ["PATH": "/nowhere"], code: 69,
            says: [
                "error: there is no redis-server in PATH",
                "hint: apt-get install -y redis-server; or use a Redis elsewhere: prefetch-coord submit --redis URL",
            ]),
        Case(
            name: "status outside of the folder of a run", words: ["status"], code: 69,
            says: [
                "error: no Redis at redis://127.0.0.1:6379",
                "hint: name the cache of your run: --cache DIR; or the Redis of your queue: --redis URL",
            ]),
        Case(
            name: "a table without a column of URLs", words: ["run", "n.csv"], files: ["n.csv": "a,b\nx,y\n"], code: 65,
            says: [
                "error: no column is called url, or anything like it, and the first rows have no URL",
                "hint: name it: --url-column; the first row has a, b",
            ]),
        Case(
            name: "a table whose column of URLs is a guess",
            words: ["run", "t.csv", "--options", "fromCacheOnly", "--allow-failures", "1"],
            files: ["t.csv": "thumb,link\ns,http://a.test/1.png\n"],
            code: 0, says: ["note: URLs are read from the column 'link'; --url-column names another"]),
        Case(
            name: "doctor without a Redis", words: ["doctor"], code: 0,
            says: ["redis        no Redis at redis://127.0.0.1:6379: "]),
        Case(
            name: "an address of Redis of no scheme that is known", words: ["status", "--redis", "http://x"], code: 78,
            says: ["hint: use redis://, rediss:// (TLS), valkey://, unix:// or redis+socket://"]),
    ]

    @Test("The sentence says what is wrong, and the next one what to do", arguments: cases)
    func sentence(_ item: Case) async throws {
        let folder = TemporaryDirectory()
        for (name, text) in item.files { folder.write(Array(text.utf8), to: name) }
        var environment = ["PATH": "/usr/bin:/bin", "HOME": folder.path("home")]
        environment.merge(item.environment) { $1 }
        let child = try await ChildProcess(
            "/usr/bin/env", ["-C", folder.path("."), builtProduct("prefetch-coord")] + item.words,
            environment: environment)
        #expect(await child.wait() == .exited(item.code), "\(child.stderr)")
        let said = child.stdout + child.stderr
        for part in item.says { #expect(said.contains(part), "\(said)") }
    }

    @Test("A line without a scheme is told apart from one of a scheme that is not fetched, and both from a broken one")
    func lines() async throws {
        let folder = TemporaryDirectory()
        folder.write(Array("example.com/a.jpg\nftp://example.com/a.jpg\nhttp://:0:/x\n".utf8), to: "urls.txt")
        let words = ["--cache", folder.path("cache")]
        try await ran(["run", folder.path("urls.txt"), "--allow-failures", "100%"] + words)
        let failures = try await ran(["failures"] + words)
        #expect(
            failures.stdout == """
                1: example.com/a.jpg  invalidURL  no scheme: did you mean https://example.com/a.jpg?
                2: ftp://example.com/a.jpg  refused  scheme ftp is not supported
                3: http://:0:/x  invalidURL  no host

                """)
    }

    @Test("A run on hosts of others without a contact says so once; with one, or on hosts of one's own, it does not")
    func contact() async throws {
        let folder = TemporaryDirectory()
        func said(_ url: String, _ options: [String] = []) async throws -> String {
            folder.write(Array("\(url)\n".utf8), to: "urls.txt")
            let run = try await ran(
                [
                    "run", folder.path("urls.txt"), "--options", "fromCacheOnly", "--allow-failures", "100%", "--cache",
                    folder.path("cache"),
                ]
                    + options)
            return run.stderr
        }
        let note = "note: pictures.example.org and others see prefetch/"
        #expect(try await said("http://pictures.example.org/1.png").ranges(of: note).count == 1)
        #expect(try await said("http://198.51.100.7/2.png").contains("--contact you@example.org") == false)
        #expect(try await said("http://pictures.test/3.png").contains("--contact") == false)
        #expect(try await said("http://8.8.8.8/4.png").contains("note: 8.8.8.8 and others"))
        for option in [
            ["--contact", "me@example.org"], ["-H", "User-Agent: mine"],
            ["--connect-to", "pictures.example.org:80:127.0.0.1:80"], ["--quiet"],
        ] {
            #expect(try await said("http://pictures.example.org/5.png", option).contains("--contact") == false)
        }
    }
}
