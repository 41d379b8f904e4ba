import Glibc
import Origin
import TestSupport
import Testing

/// `prefetch-coord demo`, as a user runs it.
@Suite("The demo", .timeLimit(.minutes(5)))
struct DemoTests {
    private let folder = TemporaryDirectory()
    private func demo(_ arguments: String...) async throws -> ChildProcess {
        try await ChildProcess(
            builtProduct("prefetch-coord"),
            ["demo", "--cache", folder.path("cache"), "-n", "2", "--count", "200"] + arguments)
    }

    /// Outcomes with a count, in the order of JSON.
    private func outcomes(_ child: ChildProcess) throws -> [String] {
        let text = child.stdout
        let start = try #require(text.firstRange(of: "\"outcomes\":{")).upperBound
        return text[start...].prefix { $0 != "}" }.split(separator: ",").map(String.init).filter { !$0.hasSuffix(":0") }
    }

    @Test("Every outcome is as expected; a second demo finds the images in the cache and prints commands that work")
    func twice() async throws {
        let first = try await demo("--json", "--quiet")
        #expect(await first.wait() == .exited(0), "\(first.stdout) \(first.stderr)")
        #expect(first.stdout.split(separator: "\n").count == 1)
        #expect(first.stdout.hasSuffix(#","as_expected":true}"# + "\n"))
        #expect(first.stdout.contains(#""state":"done","total":200,"finished":200,"skipped":20"#))
        #expect(
            try outcomes(first) == [
                #""downloaded":180"#, #""httpError":12"#, #""timeout":2"#, #""connect":2"#, #""badImage":2"#,
                #""truncated":2"#,
            ])

        let second = try await demo()
        #expect(await second.wait() == .exited(0), "\(second.stdout) \(second.stderr)")
        let lines = second.stdout.split(separator: "\n").map(String.init)
        try #require(lines.count > 3, "\(second.stdout)")
        #expect(
            lines[0].hasSuffix(
                ".2 done: finished 200 of 200: 180 images, 20 skipped (httpError 12, timeout 2, connect 2, badImage 2, truncated 2)"
            ))
        #expect(lines[1].hasPrefix("  downloaded 0   hit 180   notModified 0   in "))
        #expect(lines[1].contains(", every image from the cache, "))
        #expect(lines[2] == "all 200 outcomes as expected.")
        let introduction = second.stderr.split(separator: "\n").prefix(4).map(String.init)
        #expect(introduction.allSatisfy { $0.count <= 80 }, "\(introduction)")
        #expect(second.stdout.contains("\nyour own list next:  "))
        #expect(second.stderr.contains("demo: 200 URLs of a built-in server, http://127.0.0.1:"))
        let program = builtProduct("prefetch-coord")
        // The next one names the script of the clone or, built elsewhere, the program.
        let commands = lines.filter { !$0.hasPrefix("your own list next:") }
            .compactMap { line in line.firstRange(of: program).map { String(line[$0.lowerBound...]) } }
        #expect(commands.count == 4)
        for command in commands where !command.contains(" demo ") {
            let shell = try await ChildProcess("/bin/sh", ["-c", command])
            #expect(await shell.wait() == .exited(0), "\(command): \(shell.stderr)")
            #expect(!shell.stdout.isEmpty)
        }
        #expect(commands.last?.hasSuffix(" demo --cache \(folder.path("cache")) -n 2 --count 200") == true)
    }

    @Test("A demo that goes on with a batch of other outcomes names them and ends with 1")
    func notAsExpected() async throws {
        // The list alone: a demo writes it before anything else.
        let cache = folder.path("cache")
        var list: String { TemporaryDirectory.runState(of: cache) + "/lists/demo-200.txt" }
        let begun = try await demo("--quiet")
        try await until { access(list, F_OK) == 0 || !begun.isRunning }
        begun.signal(SIGKILL)
        await begun.wait()
        for path in [cache + "/v1", TemporaryDirectory.runState(of: cache) + "/redis"] {
            TemporaryDirectory.remove(path)
        }

        // An origin that knows no image, asked for it; two URLs stay open without a pause that would time out, so that the batch is
        // unfinished.
        let origin = try OriginServer()
        origin.setFallback { request in
            request.path.hasPrefix("/stalls/")
                ? OriginResponse(
                    headers: [("X-Long", String(repeating: "x", count: 1000))],
                    fault: .dripHeader(bytes: 1, seconds: 0.1))
                : OriginResponse(status: 404)
        }
        var words = ["run", list, "--cache", cache, "--retry-failed", "--quiet"]
        words += ["--max-per-host", "0", "--timeout", "800ms"]
        for host in ["demo", "busy", "closed"] {
            words += ["--connect-to", "\(host).prefetch.example:80:127.0.0.1:\(origin.port)"]
        }
        let other = try await ChildProcess(builtProduct("prefetch-coord"), words)
        await origin.waitForRequests(200)
        other.signal(SIGTERM)
        #expect(await other.wait() == .exited(75), "\(other.stderr)")

        let run = try await ChildProcess(
            builtProduct("prefetch-coord"), ["demo", "--cache", cache, "--count", "200"])
        #expect(await run.wait() == .exited(1), "\(run.stderr)")
        #expect(run.stderr.contains("continuing demo-200-"))
        let lines = run.stdout.split(separator: "\n")
        // 180 images, 2 cut bodies, 2 pages and 2 closed ports ended as httpError; the stalled ones were still open.
        #expect(lines.contains("not as expected: 186 of 200 outcomes."), "\(run.stdout)")
        #expect(lines.count { $0.hasPrefix("line ") } == 20)
        #expect(lines.contains { $0.hasSuffix(": expected downloaded, found httpError") })
    }
}
