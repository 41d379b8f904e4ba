import Foundation
import Prefetch
import TestSupport
import Testing

@Suite("Settings, mistakes and completions", .timeLimit(.minutes(5)))
struct SettingsTests: FolderSuite {
    let folder = TemporaryDirectory()

    /// A program in an empty folder, so that no ./cache is found.
    private func run(
        _ words: String, of product: String = "prefetch-coord", environment: [String: String] = [:]
    ) async throws -> ChildProcess {
        try await shell("exec '\(builtProduct(product))' \(words)", environment: environment)
    }

    @Test("Each setting says where it comes from, the stronger one first, and no password is told")
    func origins() async throws {
        let none = try await run("doctor --settings")
        func rows(_ child: ChildProcess) -> [[Substring]] {
            child.stdout.split(separator: "\n").map { $0.split(separator: " ") }
        }
        for row in [
            ["redis", "redis://127.0.0.1:6379", "default"], ["cache", "./cache", "default"],
            ["redis_password_file", "not", "set"],
            ["state", "\(TemporaryDirectory.stateHome.path)/prefetch", "default"],
        ] {
            #expect(rows(none).contains(row.map { Substring($0) }), "\(row): \(none.stdout)")
        }
        let variables = [
            "REDIS_URL": "redis://u:canary@weak:1/0", "PREFETCH_REDIS_URL": "redis://u:canary@strong:2/0",
            "PREFETCH_CACHE": "/srv/images", "PREFETCH_PROGRESS": "plain",
        ]
        let named = try await run("doctor --settings", environment: variables)
        #expect(
            rows(named).contains {
                $0.first == "redis" && $0[1].hasSuffix("strong:2") && $0.last == "PREFETCH_REDIS_URL"
            },
            "\(named.stdout)")
        #expect(named.stdout.contains(" environment PREFETCH_CACHE\n"))
        #expect(named.stdout.contains(" environment PREFETCH_PROGRESS\n"))
        #expect(!named.stdout.contains("canary") && !named.stderr.contains("canary"))
        let option = try await run("doctor --settings --json --cache mine --queue q", environment: variables)
        #expect(
            option.stdout.contains(#""redis":{"value":"the private one of mine","origin":"--cache"}"#),
            "\(option.stdout)")
        #expect(option.stdout.contains(#""queue":{"value":"q","origin":"--queue"}"#))
        let weak = try await run("doctor --settings", environment: ["REDIS_URL": "redis://weak:1/0"])
        #expect(rows(weak).contains(["redis", "redis://weak:1", "environment", "REDIS_URL"]))
    }

    @Test("A variable that is no setting is named, with the one that was meant")
    func variables() async throws {
        let variables = [
            "PREFETCH_REDIS_ULR": "x", "PREFETCH_COLOUR": "1", "PREFETCH_VERSION": "of compose", "PREFETCH_CACHE": "",
        ]
        let warned = try await run("doctor --settings", environment: variables)
        #expect(
            warned.stderr == """
                warning: PREFETCH_COLOUR is set, but is not a setting: prefetch-coord doctor --settings lists them
                warning: PREFETCH_REDIS_ULR is set, but is not a setting; did you mean PREFETCH_REDIS_URL?

                """)
        #expect(warned.stdout.contains("unknown: PREFETCH_COLOUR"))
        #expect(try await run("--version --quiet", of: "prefetch-worker", environment: variables).stderr.isEmpty)
    }

    @Test(
        "A mistyped command, at whatever depth, names the one that was meant",
        arguments: [
            ("statsu", "statsu", "did you mean 'prefetch-coord status'?"),
            ("cache veryfi x", "cache veryfi", "did you mean 'prefetch-coord cache verify'?"),
            ("cache nothing", "cache nothing", "there are path, "), ("blacklist ad", "blacklist ad", "blacklist add'?"),
            ("ls", "ls", "prefetch-coord status lists the batches, prefetch-coord cache ls the images\n"),
            ("stop x", "stop", "prefetch-coord cancel ends a batch, prefetch-coord pause holds it\n"),
            ("delete", "delete", "prefetch-coord rm removes finished batches, prefetch-coord cache rm images\n"),
            ("cache pth", "cache pth", "did you mean 'prefetch-coord cache path'?"),
        ])
    func mistakes(_ words: String, _ said: String, _ hint: String) async throws {
        let child = try await run(words)
        #expect(await child.wait() == .exited(64))
        #expect(child.stderr.hasPrefix("error: there is no command '\(said)'\nhint: "), "\(child.stderr)")
        #expect(child.stderr.contains(hint), "\(child.stderr)")
    }

    @Test("What is no command's name is still an argument, and options are not taken for commands")
    func arguments() async throws {
        for words in ["help status", "cache --help", "status --help", "workers --help", "--version"] {
            let child = try await run(words)
            #expect(await child.wait() == .exited(0), "\(words) \(child.stderr)")
        }
        #expect(!(try await run("why statsu --redis redis://127.0.0.1:1")).stderr.contains("no command"))
    }

    @Test(
        "Completions of both programs are scripts, and know their commands",
        arguments: ["prefetch-coord", "prefetch-worker"])
    func completions(_ product: String) async throws {
        for shell in ["bash", "zsh", "fish"] {
            let script = try await run("--generate-completion-script \(shell)", of: product)
            #expect(await script.wait() == .exited(0))
            for word in product == "prefetch-coord" ? ["doctor", "metrics", "dash"] : ["health"] {
                #expect(script.stdout.contains(word), "\(shell) \(word)")
            }
            guard shell == "bash" else { continue }
            folder.write(Array(script.stdout.utf8), to: "script")
            let check = try await ChildProcess("/usr/bin/env", ["bash", "-n", folder.path("script")])
            #expect(await check.wait() == .exited(0), "\(check.stderr)")
        }
    }

    @Test("A shell completes the names of batches")
    func batches() async throws {
        let b = try await RemoteBatch()
        try await b.submit(["http://h.test/1.png"], as: "album-1")
        try await b.submit(["http://h.test/2.png"], as: "album.2")
        let bin = URL(filePath: builtProduct("prefetch-coord")).deletingLastPathComponent().path()
        let child = try await shell(
            """
            PATH=\(bin):$PATH
            source <(prefetch-coord --generate-completion-script bash)
            COMP_WORDS=(prefetch-coord retry al) COMP_CWORD=2 COMP_LINE='prefetch-coord retry al' COMP_POINT=23
            eval "$(complete -p prefetch-coord | sed -E 's/.*-F ([^ ]+).*/\\1/')"
            printf '%s\\n' "${COMPREPLY[@]}" | sort
            """, environment: ["PREFETCH_REDIS_URL": b.redis.url])
        #expect(await child.wait() == .exited(0))
        #expect(child.stdout == "album-1\nalbum.2\n", "\(child.stderr)")
    }

    @Test("A worker logs text, or objects with time, level and event, as it is told")
    func logs() async throws {
        let b = try await RemoteBatch()
        func lines(_ options: [String], _ environment: [String: String] = [:]) async throws -> [String] {
            let worker = try await ChildProcess(
                builtProduct("prefetch-worker"),
                ["--burst", "--redis", b.redis.url, "--cache", b.folder.path("cache")] + options,
                environment: environment)
            #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
            return worker.stderr.split(separator: "\n").map(String.init)
        }
        let told = try await lines([])
        #expect(told.contains { $0.wholeMatch(of: /\d\d:\d\d:\d\d worker .* is ready/) != nil })
        let first =
            "prefetch-worker \(PrefetchVersion): Redis \(b.redis.url), queue 'default', cache \(b.folder.path("cache"))"
        #expect(told.first?.dropFirst(9) == first[...], "\(told)")
        // A name that was mistyped is told with those there are.
        try await b.submit(["http://h.test/1.png"], as: "b")
        #expect(
            try await lines(["--queue", "deafult"]).contains {
                $0.hasSuffix("note: queue 'deafult' has no batch; this Redis has the queues 'default' (--queue)")
            })
        _ = try await b.ended(["cancel", "b", "--yes"]).wait()
        for (options, environment) in [
            (["--log-format", "json"], [:]), ([], ["PREFETCH_LOG_FORMAT": "json"]), (["--log-format", "auto"], [:]),
        ] {
            let found = try await lines(options, environment)
            #expect(!found.isEmpty)
            for line in found {
                let object = try #require(
                    try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
                #expect(object["event"] is String && object["message"] is String)
            }
            let joined = try #require(found.first { $0.contains(#""event":"joined""#) })
            #expect(
                joined.contains(#""level":"info""#) && joined.contains(#"{"time":"20"#)
                    && joined.contains(#""worker":""#))
        }
        let wrong = try await run(
            "--redis \(b.redis.url) --cache c", of: "prefetch-worker", environment: ["PREFETCH_LOG_FORMAT": "xml"])
        #expect(await wrong.wait() == .exited(78))
    }
}
