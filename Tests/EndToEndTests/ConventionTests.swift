import Foundation
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

/// What people and scripts may rely on of every command.
@Suite("Conventions of the programs", .timeLimit(.minutes(5)))
struct ConventionTests: FolderSuite {
    let folder = TemporaryDirectory()
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized

    /// The pages themselves are those of HelpTests.
    @Test(
        "A program asked for help prints the page that is kept, by the columns of its terminal",
        arguments: [("prefetch-coord", []), ("prefetch-coord", ["cache", "ls"]), ("prefetch-worker", [])])
    func help(_ product: String, _ words: [String]) async throws {
        let help = try await ended(words + ["--help"], of: product, environment: ["COLUMNS": "80"])
        #expect(await help.wait() == .exited(0))
        #expect(help.stdout.last == "\n")
        let name = ([product] + words).joined(separator: "-")
        try Golden.expect(String(help.stdout.dropLast()), is: "help/\(name)--help")
    }

    @Test("Into a pipe a long run says little, and nothing that only a terminal understands")
    func pipe() async throws {
        let urls = (0..<20_000).map { "https://example.org/\($0).jpg\n" }
        folder.write(Array(urls.joined().utf8), to: "urls.txt")
        let program = builtProduct("prefetch-coord")
        let run = try await shell(
            """
            cd '\(folder.path(""))' && '\(program)' run urls.txt --cache cache --options fromCacheOnly -n 2 2>err | cat >out; \
            echo "${PIPESTATUS[0]} $(wc -l <err) $(cat out err | grep -c $'\\x1b')"
            """, environment: ["TERM": "xterm-256color"])
        let numbers = run.stdout.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
        #expect(numbers.count == 3 && numbers.first == 3 && numbers.last == 0, "\(run.stdout) \(run.stderr)")
        #expect(numbers.count == 3 && numbers[1] <= 120, "\(run.stdout)")
    }

    @Test("A password is in nothing that is printed, whatever goes wrong")
    func password() async throws {
        let b = try await RemoteBatch()
        let canary = "c4n4ry"
        _ = try await b.queue.connection.command(["CONFIG", "SET", "requirepass", RedisArgument(canary)])
        let url = "unix://:\(canary)@\(b.redis.socketPath)"
        let list = b.list(["http://192.0.2.1/a.png"])
        let away = "redis://u:\(canary)@127.0.0.1:1/0"
        var texts: [String] = []
        for words in [
            ["submit", list, "--name", "one"], ["status"], ["status", "--json"], ["workers", "--json"],
            ["failures", "one"],
            ["doctor", "--cache", b.folder.path("c")], ["doctor", "--json", "--cache", b.folder.path("c")],
            ["doctor", "--settings"], ["doctor", "--settings", "--json"], ["metrics"], ["fsck"],
            ["why", "http://192.0.2.1/a.png"], ["status", "nothing"],
            ["cancel", "one", "--yes"], ["export", "--format", "html", "one"],
        ] {
            // Whatever reads an address says the same of one that is none.
            let isOne = ["submit", "status", "doctor"].contains(words[0])
            let wrong = isOne ? ["redis://:\(canary)@h:x/0", "rediss://:\(canary)@h:1/zero"] : []
            for address in [url, away] + wrong {
                // It waits, below.
                if words[0] == "submit", address == away { continue }
                let child = try await ended(words, environment: ["PREFETCH_REDIS_URL": address])
                texts.append(child.stdout + child.stderr)
                // What works does so with the password.
                if address == url, words[0] == "submit" { #expect(await child.wait() == .exited(0), "\(child.stderr)") }
            }
        }
        let waiting = try await ChildProcess(
            builtProduct("prefetch-coord"), ["submit", list], environment: ["PREFETCH_REDIS_URL": away])
        try await until { waiting.stderr.contains("waiting for Redis") || !waiting.isRunning }
        waiting.signal(SIGTERM)
        #expect(await waiting.wait() == .exited(75), "\(waiting.stderr)")
        texts.append(waiting.stdout + waiting.stderr)
        let worker = try await ended(
            ["--burst", "--cache", b.folder.path("w")], of: "prefetch-worker", environment: ["PREFETCH_REDIS_URL": url])
        texts.append(worker.stdout + worker.stderr)
        let health = try await ended(["health"], of: "prefetch-worker", environment: ["PREFETCH_REDIS_URL": away])
        texts.append(health.stdout + health.stderr)
        for text in texts { #expect(!text.contains(canary), "\(text)") }
        #expect(texts.contains { $0.contains("***") })
    }

    @Test("No command takes long to begin: it is nearly all of what a prompt waits for")
    func start() async throws {
        let b = try await RemoteBatch()
        // The processor's time, which does not depend on who else is busy, of twenty starts.
        for (words, most) in [("--version", 2.0), ("status --redis \(b.redis.url)", 4.0)] {
            let timed = try await shell(
                "TIMEFORMAT='%U %S'; time (for i in {1..20}; do '\(builtProduct("prefetch-coord"))' \(words) >/dev/null; done)"
            )
            let seconds = timed.stderr.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
            #expect(seconds.count == 2 && seconds.reduce(0, +) < most, "\(words): \(timed.stderr)")
        }
    }

    @Test("Outcomes are spelt in one way, in the sources and on every page")
    func spelling() throws {
        var patterns = [#"http[-_][1-5](?:xx|\d\d)|not[-_]an?[-_]image|timed[-_]out|black[-_]listed"#]
        let names = Set(PrefetchOutcome.allCases.map(\.name))
        for name in names {
            // httpError is http, error in any other writing.
            let parts = name.replacing(/[A-Z]+/) { " " + $0.0.lowercased() }.split(separator: " ")
            if parts.count > 1 { patterns.append(parts.joined(separator: "[-_]?") + "s?") }
        }
        #expect(patterns.count == 8)
        // Foundation's, which takes a tenth of the time of Swift's.
        let words = try NSRegularExpression(pattern: "(?i)\\b(?:\(patterns.joined(separator: "|")))\\b")
        var files = 0
        for folder in ["Sources", "docs", "README.md"] {
            let base = Self.root.appending(path: folder)
            let walk = FileManager.default.enumerator(at: base, includingPropertiesForKeys: nil)
            for file in [base] + (walk?.compactMap { $0 as? URL } ?? [])
            where ["swift", "md", "json", "yaml"].contains(file.pathExtension) {
                let text = try String(contentsOf: file, encoding: .utf8)
                files += 1
                for match in words.matches(in: text, range: NSRange(text.startIndex..., in: text)) {
                    let range = try #require(Range(match.range, in: text))
                    if names.contains(String(text[range])) { continue }
                    let line = text[..<range.lowerBound].count { $0 == "\n" } + 1
                    Issue.record("\(file.lastPathComponent):\(line): \(text[range]) is no outcome")
                }
            }
        }
        #expect(files > 200)
    }
}
