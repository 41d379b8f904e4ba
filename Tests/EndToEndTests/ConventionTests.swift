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

    private func run(
        _ product: String, _ words: [String], environment: [String: String] = [:]
    ) async throws -> ChildProcess {
        let child = try await ChildProcess(
            builtProduct(product), words, environment: environment)
        await child.wait()
        return child
    }

    /// Whether a program is there; what it checks cannot be checked without it.
    private func has(_ program: String) async throws -> Bool {
        await (try await shell("command -v \(program)")).wait() == .exited(0)
    }

    /// The words of every command of a program, itself with none.
    private func commands(_ product: String) async throws -> [[String]] {
        let dump = try await run(product, ["--experimental-dump-help"])
        let all = try #require(try JSONSerialization.jsonObject(with: Data(dump.stdout.utf8)) as? [String: Any])
        func paths(_ command: [String: Any], _ path: [String]) -> [[String]] {
            let below = command["subcommands"] as? [[String: Any]] ?? []
            return [path]
                + below.flatMap { one -> [[String]] in
                    guard let name = one["commandName"] as? String, name != "help" else { return [] }
                    return paths(one, path + [name])
                }
        }
        return paths(try #require(all["command"] as? [String: Any]), [])
    }

    @Test(
        "The help of every command fits 80 columns and has examples",
        arguments: ["prefetch-coord", "prefetch-worker"])
    func help(_ product: String) async throws {
        let commands = try await commands(product)
        #expect(commands.count > (product == "prefetch-coord" ? 30 : 1))
        for words in commands {
            let help = try await run(product, words + ["--help"], environment: ["COLUMNS": "80"])
            #expect(await help.wait() == .exited(0))
            let name = ([product] + words).joined(separator: " ")
            for line in help.stdout.split(separator: "\n") { #expect(line.count <= 80, "\(name): \(line)") }
            // A command that only has others says which; they have the examples.
            let isGroup = commands.contains { $0.count == words.count + 1 && Array($0.dropLast()) == words }
            #expect(isGroup || help.stdout.contains("Example"), "\(name) has no examples")
        }
    }

    @Test("Completions are scripts for the three shells, and manual pages are clean")
    func scripts() async throws {
        for product in ["prefetch-coord", "prefetch-worker"] {
            for name in ["bash", "zsh", "fish"] where try await has(name) {
                let program = builtProduct(product)
                let check = try await shell(
                    "'\(program)' --generate-completion-script \(name) > '\(folder.path("script"))' && \(name) -n '\(folder.path("script"))'"
                )
                #expect(await check.wait() == .exited(0), "\(name): \(check.stderr)")
            }
            let pages = folder.path(product)
            let manual = try await shell(
                """
                mkdir '\(pages)' && '\(builtProduct(product))' --experimental-dump-help > '\(pages)/help.json' \
                && python3 -B '\(Self.root.path())/scripts/lib/manual.py' '\(pages)/help.json' "$('\(builtProduct(product))' --version)" '\(pages)'
                """)
            #expect(await manual.wait() == .exited(0), "\(manual.stderr)")
            let names = Set(try FileManager.default.contentsOfDirectory(atPath: pages))
            for words in try await commands(product) {
                #expect(names.contains(([product] + words).joined(separator: "-") + ".1"), "\(words)")
            }
            guard try await has("mandoc") else { continue }
            let lint = try await shell("mandoc -Tlint -W warning '\(pages)'/*.1")
            #expect(await lint.wait() == .exited(0), "\(lint.stdout)\(lint.stderr)")
        }
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
            for address in [url, away, "redis://:\(canary)@h:x/0", "rediss://:\(canary)@h:1/zero"] {
                // It waits, below.
                if words[0] == "submit", address == away { continue }
                let child = try await run("prefetch-coord", words, environment: ["PREFETCH_REDIS_URL": address])
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
        let worker = try await run(
            "prefetch-worker", ["--burst", "--cache", b.folder.path("w")], environment: ["PREFETCH_REDIS_URL": url])
        texts.append(worker.stdout + worker.stderr)
        let health = try await run("prefetch-worker", ["health"], environment: ["PREFETCH_REDIS_URL": away])
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
        let others = PrefetchOutcome.allCases.map(\.name).compactMap { name -> (String, Regex<Substring>)? in
            // httpError is http, error in any other writing.
            let parts = name.replacing(/[A-Z]+/) { " " + $0.0.lowercased() }.split(separator: " ")
            guard parts.count > 1,
                let regex = try? Regex("(?i)\\b\(parts.joined(separator: "[-_]?"))s?\\b", as: Substring.self)
            else { return nil }
            return (name, regex)
        }
        #expect(others.count == 7)
        let words = /(?i)\b(http[-_][1-5](xx|\d\d)|not[-_]an?[-_]image|timed[-_]out|black[-_]listed)\b/
        var files = 0
        for folder in ["Sources", "docs", "README.md"] {
            let base = Self.root.appending(path: folder)
            let walk = FileManager.default.enumerator(at: base, includingPropertiesForKeys: nil)
            for file in [base] + (walk?.compactMap { $0 as? URL } ?? [])
            where ["swift", "md", "json", "yaml"].contains(file.pathExtension) {
                let text = try String(contentsOf: file, encoding: .utf8)
                files += 1
                for (number, line) in zip(1..., text.split(separator: "\n", omittingEmptySubsequences: false)) {
                    for (name, regex) in others {
                        for match in line.matches(of: regex) where match.output != name {
                            Issue.record("\(file.lastPathComponent):\(number): \(match.output) is written \(name)")
                        }
                    }
                    if let match = line.firstMatch(of: words) {
                        Issue.record("\(file.lastPathComponent):\(number): \(match.output.0) is no outcome")
                    }
                }
            }
        }
        #expect(files > 200)
    }
}
