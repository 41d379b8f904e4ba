import Glibc
import TestSupport
import Testing

/// `scripts/chaos` with the programs that were built together with the tests.
@Suite("Chaos", .timeLimit(.minutes(10)))
struct ChaosTests: CommandSuite {
    @Test("Two minutes of kills of everything, and every URL of every batch ends once, as planted", .thorough)
    func twoMinutes() async throws { try await kept(["2"]) }

    @Test(
        "Twelve seconds of kills of everything, the same each time, and every URL of every batch ends once, as planted")
    func twelveSeconds() async throws { try await kept(["0.2", "7"]) }

    private func kept(_ words: [String]) async throws {
        let chaos = try await self.chaos(words)
        let lines = chaos.stdout.split(separator: "\n")
        #expect(lines.last?.hasPrefix("chaos: every promise kept, seed ") == true)
        for what in ["worker kill -9", "Redis kill -9", "worker frozen past its lease", "under its mark"] {
            #expect(lines.contains { $0.contains(what) }, "\(chaos.stdout)")
        }
    }

    @Test("A worker that starts while Redis is away waits for it")
    func redisStartsLater() async throws {
        let redis = try await RedisServer()
        await redis.kill9()
        let folder = TemporaryDirectory()
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"), ["--burst", "--redis", redis.url, "--cache", folder.path("cache")])
        try await until { worker.stderr.contains("waiting for Redis: ") || !worker.isRunning }
        try await redis.start()
        #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        #expect(worker.stderr.contains("Redis is back"))
    }
}
