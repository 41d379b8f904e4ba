import Glibc
import TestSupport
import Testing

/// `scripts/chaos` with the programs that were built together with the tests.
@Suite("Chaos", .timeLimit(.minutes(10)))
struct ChaosTests {
    @Test("Two minutes of kills of everything, and every URL of every batch ends once, as planted", .thorough)
    func twoMinutes() async throws { try await chaos(["2"]) }

    @Test(
        "Twenty seconds of kills of everything, the same each time, and every URL of every batch ends once, as planted")
    func twentySeconds() async throws { try await chaos(["0.33", "7"]) }

    private func chaos(_ words: [String]) async throws {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let binaries = builtProduct("prefetch-coord")
        let chaos = try await ChildProcess(
            "/usr/bin/env", ["bash", "/\(root)/scripts/chaos"] + words,
            environment: ["BIN": String(binaries[..<(binaries.lastIndex(of: "/") ?? binaries.startIndex)])])
        let end = await withTaskCancellationHandler {
            await chaos.wait()
        } onCancel: {
            chaos.signal(SIGTERM)
        }
        // The seed is in it, and with another end the folder that has everything.
        #expect(end == .exited(0), "\(chaos.stdout)\n\(chaos.stderr)")
        let lines = chaos.stdout.split(separator: "\n")
        #expect(lines.last?.hasPrefix("chaos: every promise kept, seed ") == true)
        for what in ["worker kill -9", "Redis kill -9", "worker frozen past its lease", "under its mark"] {
            #expect(lines.contains { $0.contains(what) }, "\(chaos.stdout)")
        }
    }

    @Test("run --history hands the folder to its workers, and fsck finds every outcome as it is expected to be")
    func history() async throws {
        let folder = TemporaryDirectory()
        let cache = folder.path("cache")
        folder.write(Array("# a comment\nhttp://127.0.0.1:1/a.png\nhttp://10.1.2.3/b.png\n".utf8), to: "urls.txt")
        folder.write(Array("2\tconnect\n3\trefused|timeout\n".utf8), to: "right")
        folder.write(Array("2\tconnect\n3\tdownloaded\n".utf8), to: "wrong")
        folder.write(Array("9\tconnect\n".utf8), to: "other")
        folder.write(Array("2\tnonsense\n".utf8), to: "nonsense")
        func coord(_ words: [String]) async throws -> ChildProcess {
            try await ChildProcess(builtProduct("prefetch-coord"), words, environment: RemoteBatch.clean)
        }
        let run = try await coord([
            "run", folder.path("urls.txt"), "--cache", cache, "-n", "1", "--allow-net", "127.0.0.1:1", "--name", "b",
            "--history", folder.path("history"),
        ])
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        let check = ["fsck", "b", "--cache", cache, "--history", folder.path("history")]
        let right = try await coord(check + ["--expect", folder.path("right")])
        #expect(await right.wait() == .exited(0), "\(right.stdout)")
        #expect(right.stdout.hasPrefix("b: 1 histories: ok 2, lost 0, duplicated 0, unexpected 0\n"), "\(right.stdout)")
        let json = try await coord(check + ["--json"])
        #expect(await json.wait() == .exited(0))
        #expect(json.stdout.contains(#""history":[{"batch":"b","histories":1,"torn":0,"servers":1,"ok":2,"#))
        let wrong = try await coord(check + ["--expect", folder.path("wrong")])
        #expect(await wrong.wait() == .exited(1))
        #expect(wrong.stdout.contains("b: unexpected: index 1: refused, expected downloaded\n"), "\(wrong.stdout)")
        for (words, code, text) in [
            (check + ["--expect", folder.path("other")], 65, "the first is line 9"),
            (check + ["--expect", folder.path("nonsense")], 65, "line 1 of"),
            (["fsck", "--cache", cache, "--expect", folder.path("right")], 64, "--expect goes with --history"),
            (["fsck", "--cache", cache, "--history", folder.path("none")], 66, "no histories"),
        ] as [([String], Int32, String)] {
            let child = try await coord(words)
            #expect(await child.wait() == .exited(code), "\(words) \(child.stderr)")
            #expect(child.stderr.contains(text), "\(words): \(child.stderr)")
        }
    }

    @Test("A worker that starts while Redis is away waits for it")
    func redisStartsLater() async throws {
        let redis = try await RedisServer()
        await redis.kill9()
        let folder = TemporaryDirectory()
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"), ["--burst", "--redis", redis.url, "--cache", folder.path("cache")],
            environment: RemoteBatch.clean)
        try await until { worker.stderr.contains("waiting for Redis: ") || !worker.isRunning }
        try await redis.start()
        #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        #expect(worker.stderr.contains("Redis is back"))
    }
}
