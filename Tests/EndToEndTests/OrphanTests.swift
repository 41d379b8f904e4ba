import Glibc
import TestSupport
import Testing

@Suite("What is left of runs whose cache is gone", .timeLimit(.minutes(5)))
struct OrphanTests: FolderSuite {
    let folder = TemporaryDirectory()

    private func run(_ cache: String) async throws {
        let list = list(["http://192.0.2.1/a.png"])
        let words = ["run", list, "--options", "fromCacheOnly", "-q", "-n", "1", "--state", folder.path("state")]
        try await ran(words + ["--cache", folder.path(cache)], exits: 3)
    }

    @Test(
        "doctor names it, and rm --orphans removes it after a question, never that of a cache that is there or in use")
    func orphans() async throws {
        let state = ["--state", folder.path("state")]
        try await ran(["rm", "--orphans", "--yes"] + state)
        for cache in ["a", "b", "c"] { try await run(cache) }
        let well = try await ended(["doctor", "--json"] + state)
        #expect(well.stdout.contains("what runs keep of 3 caches"), "\(well.stdout)")
        try await shell("mv a moved; rm -r b; mv c gone")
        let id = String(decoding: try #require(folder.read("gone/.prefetch/id")).dropLast(), as: UTF8.self)
        let lock = folder.path("state/\(id)/redis/server.lock")
        let server = try await ChildProcess("/usr/bin/env", ["flock", "--no-fork", lock, "sleep", "600"])
        try await until { try await shell("flock -n '\(lock)' true").wait() != .exited(0) }
        // A cache that was moved is found again by the next command that names it.
        try await ran(["status", "--cache", folder.path("moved")] + state)
        let doctor = try await ended(["doctor"] + state)
        #expect(
            doctor.stdout.contains("warn  state") && doctor.stdout.contains("prefetch-coord rm --orphans"),
            "\(doctor.stdout)")
        try await ran(["rm", "--orphans"] + state, exits: 78, says: "rm would remove what runs have kept of 2 caches")
        let removed = try await ran(["rm", "--orphans", "--yes"] + state)
        #expect(removed.stdout.contains("removed the state of \(folder.path("b"))\n"), "\(removed.stdout)")
        #expect(
            removed.stdout.contains("left the state of \(folder.path("c")), whose Redis is running\n"),
            "\(removed.stdout)")
        server.signal(SIGKILL)
        await server.wait()
        try await ran(["status", "--cache", folder.path("moved")] + state)
        try await ran(["rm", "b", "--orphans"] + state, exits: 64, says: "rm takes batches, or --orphans")
    }
}
