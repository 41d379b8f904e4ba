import Foundation
import PrefetchModel
import TestSupport
import Testing

/// `scripts/install` and what it takes away again, in a folder in place of the machine's root.
@Suite("Installing", .timeLimit(.minutes(5)))
struct InstallTests {
    private static let script = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../scripts/install").standardized.path()
    private let root = TemporaryDirectory()

    /// * `earlier`: another version, which says little of itself.
    private func install(
        _ options: String = "", path: String? = nil, earlier: Bool = false
    ) async throws -> (ChildProcess.Status, String) {
        var environment: [String: String] = [:]
        environment["DESTDIR"] = root.path("root")
        environment["BIN"] = URL(filePath: builtProduct("prefetch-coord")).deletingLastPathComponent().path()
        if earlier {
            try make(["earlier"])
            let program = """
                #!/bin/sh
                case $1 in
                    --version) echo prefetch 0.0.1 ;;
                    --generate-completion-script) echo complete ;;
                    *) printf '{"command":{"commandName":"%s"}}' "${0##*/}" ;;
                esac

                """
            for name in ["prefetch-coord", "prefetch-codec"] {
                root.write(Array(program.utf8), to: "earlier/\(name)")
                chmod(root.path("earlier/\(name)"), 0o755)
            }
            environment["BIN"] = root.path("earlier")
        }
        if let path { environment["PATH"] = path }
        let child = try await ChildProcess(
            "/usr/bin/env", ["bash", "-c", "'\(Self.script)' \(options)"], environment: environment)
        return (await child.wait(), child.stdout + child.stderr)
    }

    /// Files and folders below the root.
    private var tree: Set<String> {
        Set((try? FileManager.default.subpathsOfDirectory(atPath: root.path("root"))) ?? [])
    }

    private func make(_ folders: [String]) throws {
        for folder in folders {
            try FileManager.default.createDirectory(atPath: root.path(folder), withIntermediateDirectories: true)
        }
    }

    @Test(
        "Uninstalling takes what was installed and no folder that was there, also after an installation over another; all of it works"
    )
    func uninstall() async throws {
        try make(["root/usr/local/bin", "root/usr/local/share/man/man1", "root/etc"])
        root.write(Array("mine".utf8), to: "root/usr/local/bin/other")
        let before = tree
        for earlier in [true, false] {
            let (status, said) = try await install(earlier: earlier)
            #expect(status == .exited(0), "\(said)")
        }
        for name in ["prefetch-worker", "prefetch-origin"] {
            let link = try FileManager.default.destinationOfSymbolicLink(
                atPath: root.path("root/usr/local/bin/\(name)"))
            #expect(link == "prefetch-coord")
            #expect(tree.contains("usr/local/share/man/man1/\(name).1"))
        }
        #expect(tree.contains("usr/local/lib/systemd/system/prefetch-worker@.service"))
        #expect(tree.contains("etc/prefetch/worker.env"))
        try await names()
        try await completion()
        try await pages()
        // What somebody has put into a folder of ours stays, and the folder with it.
        root.write(Array("mine".utf8), to: "root/usr/local/share/fish/vendor_completions.d/other.fish")
        let (status, said) = try await install("--uninstall")
        #expect(status == .exited(0), "\(said)")
        let kept = [
            "usr/local/share/fish", "usr/local/share/fish/vendor_completions.d",
            "usr/local/share/fish/vendor_completions.d/other.fish",
        ]
        #expect(tree == before.union(kept))
        #expect(try await install("--uninstall").0 == .exited(66))
    }

    /// The one program is the worker under the worker's name: in help, errors and ps, and for run, which starts it.
    private func names() async throws {
        let worker = root.path("root/usr/local/bin/prefetch-worker")
        func said(_ words: String...) async throws -> String {
            let child = try await ChildProcess(worker, words)
            await child.wait()
            return child.stdout + child.stderr
        }
        #expect(try await said("--help").hasPrefix("Usage: prefetch-worker "))
        #expect(try await said("--version") == "prefetch \(PrefetchVersion)\n")
        #expect(try await said("--none").contains("prefetch-worker -h lists the options"))
        let redis = try await RedisServer()
        let waiting = try await ChildProcess(
            worker, ["--redis", redis.url, "--cache", root.path("cache")])
        let process = try await ChildProcess("/bin/ps", ["-o", "comm=,args=", "-p", "\(waiting.pid)"])
        await process.wait()
        #expect(process.stdout.hasPrefix("prefetch-worker \(worker) --redis "), "\(process.stdout)")
        waiting.signal(SIGKILL)
        await waiting.wait()
        root.write(Array("http://192.0.2.1/a.png\n".utf8), to: "urls.txt")
        let run = try await ChildProcess(
            root.path("root/usr/local/bin/prefetch-coord"),
            [
                "run", root.path("urls.txt"), "-v", "-n", "1", "--cache", root.path("own"), "--allow-failures", "1",
                "--options", "fromCacheOnly",
            ])
        #expect(await run.wait() == .exited(0), "\(run.stderr)")
        #expect(run.stderr.contains("\nprefetch-worker "))
    }

    @Test("An installation that stopped half way is taken away, too")
    func halfWay() async throws {
        try make(["root/usr/local", "bin"])
        let before = tree
        // Python without its modules, as python3-minimal has it.
        root.write(Array("#!/bin/sh\nexit 1\n".utf8), to: "bin/python3")
        chmod(root.path("bin/python3"), 0o755)
        let (status, said) = try await install(path: root.path("bin") + ":/usr/bin:/bin", earlier: true)
        #expect(status != .exited(0), "\(said)")
        #expect(tree.contains("usr/local/bin/prefetch-coord"))
        let (removed, words) = try await install("--uninstall")
        #expect(removed == .exited(0), "\(words)")
        #expect(tree == before)
    }

    /// Bash completes files of lists and folders of caches; zsh and fish are told to.
    private func completion() async throws {
        try make(["here/images"])
        root.write([], to: "here/urls.txt")
        let words = root.path("root/usr/local/share/bash-completion/completions/prefetch-coord")
        for (line, expected) in [
            (["submit", "ur"], "urls.txt"), (["run", "ur"], "urls.txt"), (["status", "--cache", "im"], "images"),
            (["export", "--output", "ur"], "urls.txt"),
        ] {
            let array = (["prefetch-coord"] + line).map { "'\($0)'" }.joined(separator: " ")
            let child = try await ChildProcess(
                "/usr/bin/env",
                [
                    "-C", root.path("here"), "bash", "-c",
                    """
                    complete() { function=${@: -2:1}; builtin complete "$@"; }
                    source '\(words)'
                    COMP_WORDS=(\(array)) COMP_CWORD=\(line.count) COMP_LINE='prefetch-coord \(line.joined(separator: " "))'
                    COMP_POINT=${#COMP_LINE} COMPREPLY=()
                    "$function" prefetch-coord '\(line.last ?? "")' '\(line.dropLast().last ?? "prefetch-coord")'
                    printf '%s\\n' "${COMPREPLY[@]}"
                    """,
                ])
            await child.wait()
            #expect(
                child.stdout.split(separator: "\n").contains(Substring(expected)),
                "\(line): \(child.stdout) \(child.stderr)")
        }
        func text(_ path: String) throws -> String {
            try String(contentsOfFile: root.path("root/usr/local/share/\(path)"), encoding: .utf8)
        }
        #expect(try text("zsh/site-functions/_prefetch-coord").contains("_files"))
        #expect(try text("fish/vendor_completions.d/prefetch-coord.fish").contains("-F") == true)
    }

    /// Completions are scripts for the three shells, and the manual has a page for every command, each of them clean.
    private func pages() async throws {
        func check(_ line: String) async throws {
            let child = try await ChildProcess(
                "/usr/bin/env", ["-C", root.path("root/usr/local/share"), "bash", "-c", line])
            #expect(await child.wait() == .exited(0), "\(line): \(child.stdout)\(child.stderr)")
        }
        for program in ["prefetch-coord", "prefetch-worker"] {
            for (shell, file) in [
                ("bash", "bash-completion/completions/\(program)"), ("zsh", "zsh/site-functions/_\(program)"),
                ("fish", "fish/vendor_completions.d/\(program).fish"),
            ] { try await check("! command -v \(shell) || \(shell) -n \(file)") }
        }
        let help = URL(filePath: Self.script).appending(path: "../../Tests/Golden/help").standardized
        let names = try FileManager.default.contentsOfDirectory(atPath: help.path()).filter {
            $0.hasSuffix("--help.txt")
        }
        #expect(names.count > 30)
        for name in names {
            #expect(tree.contains("usr/local/share/man/man1/\(name.dropLast("--help.txt".count)).1"))
        }
        try await check("! command -v mandoc || mandoc -Tlint -W warning man/man1/*.1")
    }
}
