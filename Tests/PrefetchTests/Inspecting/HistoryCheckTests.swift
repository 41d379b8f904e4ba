import Origin
import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("The history check", .timeLimit(.minutes(5)))
struct HistoryCheckTests {
    /// What histories and Redis say of the first of six URLs, which is downloaded unless commands say otherwise.
    struct Plant: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// Lines of two workers, `$` stands for the present start of Redis.
        var lines: [[String]]
        /// What Redis has beside that.
        var commands: [[String]] = []
        var found: HistoryCheck.Class
        var says = ""
    }

    static let plants = [
        Plant(
            testDescription: "one worker, told so",
            lines: [["claimed\tw\tb:0:2\t-", "sent\tw\tb:0:2\t1\t0=1", "confirmed\tw\tb:0:2\t1\t$\t0=1"]], found: .ok),
        Plant(
            testDescription: "never told", lines: [["claimed\tw\tb:0:2\t-", "sent\tw\tb:0:2\t1\t0=1,1=4"]],
            found: .recovered),
        Plant(
            testDescription: "a torn last line",
            lines: [["claimed\tw\tb:0:2\t-", "sent\tw\tb:0:2\t1\t0=1", "confirmed\tw\tb:0:2\t1\t$\t0="]],
            found: .recovered),
        Plant(
            testDescription: "two workers had it",
            lines: [
                ["claimed\tw\tb:0:2\t-", "sent\tw\tb:0:2\t1\t0=1", "confirmed\tw\tb:0:2\t1\t$\t0=1"],
                ["claimed\tv\tb:0:1\t-", "sent\tv\tb:0:1\t1\t0=2", "confirmed\tv\tb:0:1\t1\t$\t-"],
            ], found: .recovered),
        Plant(
            testDescription: "the second worker saw that it was settled",
            lines: [
                ["claimed\tw\tb:0:2\t-", "sent\tw\tb:0:2\t1\t0=1", "confirmed\tw\tb:0:2\t1\t$\t0=1"],
                ["claimed\tv\tb:0:2\t0=1"],
            ], found: .ok),
        Plant(
            testDescription: "Redis forgot it in between",
            lines: [
                ["claimed\tw\tb:0:2\t-", "sent\tw\tb:0:2\t1\t0=2", "confirmed\tw\tb:0:2\t1\tolder\t0=2"],
                ["claimed\tw\tb:0:2\t-", "sent\tw\tb:0:2\t1\t0=1", "confirmed\tw\tb:0:2\t1\t$\t0=1"],
            ], found: .recovered),
        Plant(
            testDescription: "two firsts of one start",
            lines: [
                ["sent\tw\tb:0:2\t1\t0=1", "confirmed\tw\tb:0:2\t1\t$\t0=1"],
                ["sent\tv\tb:0:2\t1\t0=1", "confirmed\tv\tb:0:2\t1\t$\t0=1"],
            ], found: .duplicated, says: "first settled by 2 reports: downloaded, downloaded"),
        Plant(
            testDescription: "another outcome than told",
            lines: [["sent\tw\tb:0:2\t1\t0=1", "confirmed\tw\tb:0:2\t1\t$\t0=5"]], found: .lost,
            says: "a worker was told httpError, and Redis has downloaded"),
        Plant(
            testDescription: "told, and open",
            lines: [["sent\tw\tb:0:2\t1\t0=1", "confirmed\tw\tb:0:2\t1\t$\t0=1"]],
            commands: [["SETRANGE", "$:b:b:o", "0", "\u{0}"]], found: .lost,
            says: "a worker was told downloaded, and Redis has nothing"),
        Plant(
            testDescription: "open in a batch that is done", lines: [["claimed\tw\tb:0:2\t-"]],
            commands: [["SETRANGE", "$:b:b:o", "0", "\u{0}"], ["HSET", "$:b:b", "state", "done"]], found: .lost,
            says: "open in a batch that is done"),
        Plant(
            testDescription: "nobody sent it", lines: [["claimed\tw\tb:0:2\t-"]], found: .unexpected,
            says: "downloaded, and no history has such a report"),
        Plant(
            testDescription: "somebody else sent it",
            lines: [["sent\tw\tother:0:2\t1\t0=1", "sent\tw\tb.2:0:2\t1\t0=1"]],
            found: .unexpected, says: "no history has such a report"),
        Plant(
            testDescription: "no such outcome", lines: [["sent\tw\tb:0:2\t1\t0=1"]],
            commands: [["SETRANGE", "$:b:b:o", "0", "\u{20}"]],
            found: .unexpected, says: "there is no outcome 32"),
        Plant(
            testDescription: "beyond the end", lines: [["sent\tw\tb:0:2\t1\t0=1", "sent\tw\tb:6:1\t1\t6=1"]],
            found: .unexpected,
            says: "the batch has 6 URLs"),
        Plant(
            testDescription: "not as expected", lines: [["sent\tw\tb:0:2\t1\t0=5", "confirmed\tw\tb:0:2\t1\t$\t0=5"]],
            commands: [["SETRANGE", "$:b:b:o", "0", "\u{5}"]], found: .unexpected,
            says: "httpError, expected downloaded"),
        Plant(
            testDescription: "open in a batch that was cancelled", lines: [["claimed\tw\tb:0:2\t-"]],
            commands: [["SETRANGE", "$:b:b:o", "0", "\u{0}"], ["HSET", "$:b:b", "state", "cancelled"]],
            found: .unexpected, says: "cancelled, expected downloaded"),
    ]

    /// A batch of which Redis has the first URL as downloaded, and the others open, and histories in a folder.
    private func planted(
        _ lines: [[String]], _ commands: [[String]] = []
    ) async throws -> (QueueFixture, TemporaryDirectory) {
        let f = try await QueueFixture()
        try await f.fill(sizes: [2, 2, 2], fields: [("total", "6")])
        try await f.redis("SETRANGE", f.keys.outcomes("b"), "0", "\u{1}")
        for command in commands {
            try await f.queue.connection.command(command.map { RedisArgument($0.replacing("$", with: f.keys.root)) })
        }
        let server = try await f.queue.connection.serverFacts().runID
        let folder = TemporaryDirectory()
        for (number, lines) in lines.enumerated() {
            let head = "1\tprefetch-history\t1\thost\t7\t\(f.queue.catalog.queueName)\n"
            var text = head + lines.map { "5\t\($0)\n" }.joined().replacing("$", with: server)
            if text.hasSuffix("=\n") { text.removeLast() }
            folder.write(Array(text.utf8), to: "host-\(number)-1.history")
        }
        // Of another queue, and no history at all.
        folder.write(Array("1\tprefetch-history\t1\th\t7\tother\n5\tsent\tw\tb:0:2\t1\t0=1\n".utf8), to: "x.history")
        folder.write(Array("5\tsent\tw\tb:0:2\t1\t0=1\n".utf8), to: "x.txt")
        return (f, folder)
    }

    @Test("Every class is told from the others", arguments: plants)
    func classes(_ plant: Plant) async throws {
        let (f, folder) = try await planted(plant.lines, plant.commands)
        let check = HistoryCheck(queue: f.queue, batch: "b", folder: folder.path)
        // An image that was there already is as good as one that was fetched.
        let result = try await check.run { $0 == 0 ? [.hit, .downloaded] : nil }
        if plant.found.isBad {
            #expect(result.examples.contains { $0.kind == plant.found && $0.message.contains(plant.says) }, "\(result)")
            #expect(result.examples.allSatisfy { $0.kind == plant.found } && !result.isGood, "\(result)")
        } else {
            #expect(result.isGood && result.counts[plant.found] == 1, "\(result)")
        }
        #expect(result.torn == (plant.testDescription.contains("torn") ? 1 : 0))
    }

    @Test("Workers keep what a check needs: every URL of a real batch is explained")
    func realWorkers() async throws {
        let fixture = try await WorkerFixture()
        let folder = fixture.folder.path("history")
        fixture.origin.route("/0.png", OriginResponse(status: 404))
        let body = GeneratedImage.png(seed: 4, width: 12, height: 12)
        fixture.origin.setFallback { _ in OriginResponse(body: body) }
        let queue = try fixture.queue()
        let id = try await fixture.submit(
            (0..<20).map { fixture.origin.url("/\($0).png") } + ["no url"], to: queue, jobSize: 4)
        let logs = try (0..<2).map { _ in try HistoryLog(folder: folder, queue: "default") }
        let workers = try logs.map { log in try fixture.worker { $0.history = log } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in workers { group.addTask { _ = try await worker.run() } }
            try await group.waitForAll()
        }
        let result = try await HistoryCheck(queue: queue, batch: id, folder: folder).run()
        #expect(result.isGood && result.counts == [.ok: 21], "\(result)")
        #expect(result.files == 2 && result.torn == 0 && result.servers == 1)
        let text = logs.map { String(decoding: readFile($0.path) ?? [], as: UTF8.self) }.joined()
        let kinds = text.split(separator: "\n").map { String($0.split(separator: "\t")[1]) }
        #expect(kinds.count { $0 == "prefetch-history" } == 2)
        #expect(kinds.count { $0 == "joined" } == 2 && kinds.count { $0 == "left" } == 2)
        #expect(kinds.count { $0 == "claimed" } == 6)
        #expect(kinds.count { $0 == "began" } == 20)
        #expect(Set(kinds).isSuperset(of: ["settled", "sent", "confirmed"]))

        // A second batch of the same list has its own.
        let other = try await fixture.submit([fixture.origin.url("/0.png")], to: queue)
        let none = try await HistoryCheck(queue: queue, batch: other, folder: folder).run()
        #expect(none.counts == [.open: 1])
    }

    @Test("A folder without histories, and a batch that is not there, are not found")
    func missing() async throws {
        let (f, folder) = try await planted([])
        for (batch, path) in [("b", "/nowhere"), ("none", folder.path), ("b", TemporaryDirectory().path)] {
            await #expect("\(batch) in \(path)") {
                _ = try await HistoryCheck(queue: f.queue, batch: batch, folder: path).run()
            } throws: { ($0 as? PrefetchError)?.kind == .notFound }
        }
    }
}
