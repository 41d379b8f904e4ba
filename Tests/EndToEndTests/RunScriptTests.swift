import Foundation
import TestSupport
import Testing

/// `scripts/run` in a copy of the scripts, with a `swift` that builds a program of two lines.
@Suite("The first command", .timeLimit(.minutes(5)))
struct RunScriptTests {
    private let folder = TemporaryDirectory()

    init() async throws {
        let scripts = PythonTools.root.appending(path: "scripts").path()
        let made = try await ChildProcess(
            "/usr/bin/env",
            [
                "-C", folder.path(""), "bash", "-ec",
                """
                mkdir -p tree/Sources bin && cp -a '\(scripts)' tree/scripts
                touch tree/Package.swift && echo one >tree/Sources/one.swift && echo http://example.org/ >tree/urls.txt
                cat >bin/swift <<'END'
                #!/bin/bash
                case $1 in
                    --version) echo "Swift version 6.3.1"; exit ;;
                    build) echo "$*" >>"$(dirname "$0")/builds" ;;
                esac
                echo "Building for production..."
                for n in 1 2 3; do echo "[$n/3] Compiling Module$n file.swift"; sleep "${PAUSE:-0}"; done
                if [ -e "$(dirname "$0")/fails" ]; then echo "one.swift:1:1: error: no such thing"; exit 1; fi
                mkdir -p .build/release
                # Its last word is the product.
                product=.build/release/${!#}
                printf '#!/bin/sh\\necho "ran: $*"\\n' >"$product"
                chmod 755 "$product"
                echo "Build complete!"
                END
                chmod 755 bin/swift
                """,
            ])
        try #require(await made.wait() == .exited(0), "\(made.stderr)")
    }

    private func run(
        _ words: String = "", path: String? = nil
    ) async throws -> (status: ChildProcess.Status, out: String, error: String) {
        let child = try await ChildProcess(
            "/usr/bin/env", ["-C", folder.path("tree"), "bash", "-c", "scripts/run \(words)"],
            environment: ["PATH": path ?? "\(folder.path("bin")):/usr/bin:/bin"])
        return (await child.wait(), child.stdout, child.stderr)
    }

    private var builds: Int { folder.read("bin/builds")?.count { $0 == 10 } ?? 0 }

    @Test("It says that it builds, builds once, and says nothing more of it until something has changed")
    func builds() async throws {
        let first = try await run()
        #expect(first.status == .exited(0), "\(first.error)")
        #expect(first.out == "ran: demo\n")
        let lines = first.error.split(separator: "\n").map(String.init)
        #expect(lines.first?.contains("apt-get (sudo) and builds prefetch, about 5 minutes") == true, "\(lines)")
        #expect(lines.last == "building prefetch-coord, about 5 minutes the first time")
        // One for each of the two programs.
        #expect(builds == 2)
        for name in ["prefetch-worker", "prefetch-origin"] {
            let link = folder.path("tree/.build/release/\(name)")
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "prefetch-coord")
        }
        let second = try await run("urls.txt -n 2")
        #expect(second.out == "ran: run urls.txt -n 2\n" && second.error.isEmpty)
        let demo = try await run("demo --count 100")
        #expect(demo.out == "ran: demo --count 100\n" && demo.error.isEmpty)
        let withoutSwift = try await run("demo", path: "/usr/bin:/bin")
        #expect(withoutSwift.out == "ran: demo\n" && withoutSwift.error.isEmpty)
        #expect(builds == 2)
        folder.write(Array("two\n".utf8), to: "tree/Sources/one.swift")
        let third = try await run()
        #expect(third.error == "building prefetch-coord\n" && builds == 4)
    }

    @Test("A build that fails shows what the compiler says, without its progress")
    func fails() async throws {
        folder.write([], to: "bin/fails")
        let run = try await run()
        #expect(run.status == .exited(70) && run.out.isEmpty)
        #expect(run.error.contains("one.swift:1:1: error: no such thing\nerror: the build failed\n"))
        #expect(!run.error.contains("Compiling"), "\(run.error)")
    }

    @Test("Help comes without a build and without Swift; a list that is not there is named before the build")
    func help() async throws {
        for word in ["-h", "--help"] {
            let help = try await run(word, path: "/usr/bin:/bin")
            #expect(help.status == .exited(0) && help.error.isEmpty)
            for text in ["scripts/run [demo]", "scripts/run LIST", "scripts/run --toolchain", "about 5 minutes"] {
                #expect(help.out.contains(text), "\(help.out)")
            }
            #expect(help.out.split(separator: "\n").map(String.init).allSatisfy { $0.count <= 100 })
        }
        let missing = try await run("ulrs.txt")
        #expect(missing.status == .exited(66) && missing.error.hasPrefix("error: there is no list ulrs.txt\nhint: "))
        #expect(builds == 0)
    }

    @Test("On a terminal the progress is one line, which is gone at the end")
    func terminal() async throws {
        let terminal = try await Tmux(columns: 100, rows: 20)
        // A shell of tmux has the path of what asks for it.
        let path = "PATH='\(folder.path("bin"))':/usr/bin:/bin"
        try await terminal.type("cd '\(folder.path("tree"))' && clear && \(path) PAUSE=1.5 scripts/run; echo ended")
        try await until { try await terminal.text.contains("[2/3] Compiling Module2 file.swift, ") }
        #expect(try await !terminal.text.contains("Module1"))
        try await until { try await terminal.text.contains("\nended") }
        #expect(try await terminal.text.contains("the first time\nran: demo\nended"))
    }
}
