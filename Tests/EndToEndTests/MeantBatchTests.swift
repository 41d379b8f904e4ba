import PrefetchModel
import TestSupport
import Testing

/// Commands without the name of a batch, in a queue that has several.
@Suite("The batch that is meant", .timeLimit(.minutes(5)))
struct MeantBatchTests {
    @Test("A command that takes the newest of several batches says which one that is, and how to ask for another")
    func named() async throws {
        let batch = try await RemoteBatch()
        let cache = batch.folder.path("cache")
        try await batch.submit(["http://h.example/1"], as: "one")
        try await batch.settle("one", 0, "http://h.example/1", .httpError)
        // Alone it is meant by everybody.
        #expect(try await batch.done(["failures"]).stderr == "")
        try await batch.submit(["http://h.example/2", "http://h.example/3"], as: "two")
        try await batch.settle("two", 0, "http://h.example/2", .httpError)
        _ = try await batch.workers(0)
        for command in ["failures", "why --oldest", "pause", "resume", "dash --once", "export --format failed"] {
            let words = command.split(separator: " ").map(String.init)
            let needsCache = command.hasPrefix("export")
            if needsCache { try await batch.shell("mkdir -p '\(cache)/v1'").wait() }
            let named = try await batch.done(words + (needsCache ? ["--cache", cache] : []))
            #expect(
                named.stderr.contains("note: this is two, the newest of 2 batches; the other: ")
                    && named.stderr.contains(" \(command) one "), "\(command): \(named.stderr)")
            let asked = try await batch.done(
                (command == "dash --once" ? ["dash", "one", "--once"] : words + ["one"])
                    + (needsCache ? ["--cache", cache] : []))
            #expect(!asked.stderr.contains("newest of"), "\(command): \(asked.stderr)")
        }
        let cancelled = try await batch.done(["cancel", "--yes"])
        #expect(cancelled.stderr.contains("note: this is two, the newest of 2 batches; the other: "))
        // A retry answers as its batch does.
        let retry = try await batch.done(["retry"])
        #expect(retry.stderr.contains("note: this is two, the newest of 2 batches"), "\(retry.stderr)")
        #expect(try await batch.done(["failures"]).stderr.contains("the newest of 2 batches; the other: "))
    }
}
