import Foundation
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch
@testable import Queue

/// The types of a queue's keys: that none is forgotten, that a wrong one is found, and that one that belongs to no batch is put aside.
@Suite("The types of keys", .timeLimit(.minutes(5)))
struct KeyTypeTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// Every key with a name filled in, and the type it must have.
    static let all = (PrefetchKeys.ofQueue + PrefetchKeys.ofBatch + PrefetchKeys.ofOthers).map {
        (name: $0.name.replacing("*", with: "b"), type: $0.type)
    }

    /// The names of keys that the sources and the scripts build, from their texts: `*` is what they put in.
    private static func built() throws -> Set<String> {
        let folder = root.appending(path: "Sources/Queue")
        var names: Set<String> = []
        for script in try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "Scripts").path) {
            let text = try String(contentsOf: folder.appending(path: "Scripts/\(script)"), encoding: .utf8)
            // K .. ':own:' .. worker, batch(id) .. ':o'; the name of a function of the prelude is no part of it.
            for match in text.matches(of: /(K|batch\([^()]*\)) \.\. ':([^']*)'( \.\. )?/) {
                let name = (match.1 == "K" ? "" : "b:*:") + match.2 + (match.3 == nil ? "" : "*")
                names.insert(name)
            }
        }
        let text = try String(contentsOf: folder.appending(path: "Roles/PrefetchKeys.swift"), encoding: .utf8)
        for match in text.matches(of: /root \+ ":([^\n]*) }/) {
            let parts = ("\"" + match.1).components(separatedBy: " + ")
            let name = parts.map { $0.hasPrefix("\"") ? $0.replacing("\"", with: "") : "*" }.joined()
            names.insert(name.replacing("* *", with: "*"))
        }
        // Whatever ASIDE is told, and its new name, which any type may have.
        return names.subtracting(["*", "aside:*"])
    }

    @Test("Every key that the sources build has a type in the table, and every type there has a key")
    func noneIsForgotten() throws {
        var expected = Set((PrefetchKeys.ofQueue + PrefetchKeys.ofBatch + PrefetchKeys.ofOthers).map(\.name))
        let built = try Self.built()
        #expect(built.isSuperset(of: ["batches", "b:*:w", "own:*", "robots:*", "ready:*"]), "\(built.sorted())")
        // One of three.
        expected.insert("ready:*")
        #expect(built.subtracting(expected).sorted() == [])
        #expect(expected.subtracting(built).sorted() == [])
    }

    @Test("docs/PROTOCOL.md gives every key the type that the check asks for")
    func page() throws {
        let page = try String(contentsOf: Self.root.appending(path: "docs/PROTOCOL.md"), encoding: .utf8)
        var said: [String: String] = [:]
        for row in page.split(separator: "\n") where row.hasPrefix("| `prefetch:{Q}:") {
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            // `prefetch:{Q}:ready:high`, `:normal`, `:low`
            for name in cells[0].matches(of: /`(?:prefetch:{Q}:)?([^`]+)`/).map({ String($0.1) }) {
                let name = name.hasPrefix(":") ? "ready" + name : name.replacing(/<.*>/, with: "*")
                said[name.replacing(/<[^<]*>/, with: "*")] = cells[1].lowercased()
            }
        }
        var expected = Dictionary(
            (PrefetchKeys.ofQueue + PrefetchKeys.ofBatch + PrefetchKeys.ofOthers).map { ($0.name, $0.type) }
        ) { $1 }
        expected["rate:#bytes *"] = "string"
        expected["aside:*"] = "any"
        #expect(said == expected)
    }

    @Test("A key of a wrong type is found by its name, and put aside unless it is a batch's", arguments: all)
    func wrongType(name: String, type: String) async throws {
        let plant = try await HealingTests.Plant(count: 6)
        let f = plant.f
        try await f.join("b", "v")
        let jobs = try await f.claim("b", 1, count: 2).map(\.job)
        _ = try await f.queue.reports.send(
            [QueueFixture.report(jobs[0], [.downloaded, .badImage], isFinal: false)], worker: "b")
        try await f.redis("HSET", f.keys.batch("b"), "deadline", "9000000000000")
        try await f.redis("ZADD", f.keys.deadlines, "9000000000000", "b")
        #expect(try await plant.findings() == [])
        let key = "\(f.keys.root):\(name)"
        let wrong = type == "string" ? "hash" : "string"
        try await f.redis("DEL", key)
        _ = try await wrong == "hash" ? f.redis("HSET", key, "x", "x") : f.redis("SET", key, "x")
        #expect(try await plant.findings().contains("Type \(key) is a \(wrong), not a \(type)"), "\(name)")
        let said = try await plant.heal()
        let aside = f.keys.aside(name)
        guard PrefetchKeys.typed(batchKey: name) == nil else {
            #expect(said.allSatisfy { !$0.contains("aside") }, "\(said)")
            #expect(try await f.queue.batches.remove(batch: "b", force: true) == .removed)
            return #expect(try await plant.findings() == [])
        }
        #expect(said.contains("put aside \(key) is a \(wrong), not a \(type): it is \(aside) for a week"), "\(said)")
        #expect(try await f.redis("TYPE", aside) == .status(wrong))
        #expect((604_700...604_800).contains(try await f.redis("TTL", aside).int ?? 0))
        // Its claims are gone, and the worker goes on with them.
        if name != "own:b" { #expect(try await plant.findings() == [], "\(said)") }
        #expect(try await plant.heal() == [])
        #expect(try await f.queue.catalog.ids() == ["b"])
        #expect(try await f.redis("ZSCORE", f.keys.deadlines, "b").string == "9000000000000")
        for job in jobs { try await f.finish(job, "b") }
        try await plant.finish()
        #expect(try await plant.findings() == [])
        #expect(try await f.queue.batches.status(of: "b")?.counts.finished == 6)
    }

    @Test("The record of a worker that has no claims, or is gone, is looked at too")
    func records() async throws {
        let plant = try await HealingTests.Plant(count: 2)
        let f = plant.f
        try await f.join("w")
        for worker in ["w", "gone"] {
            try await f.redis("DEL", f.keys.worker(worker))
            try await f.redis("RPUSH", f.keys.worker(worker), "x")
        }
        let wrong = ["gone", "w"].map { "Type \(f.keys.worker($0)) is a list, not a hash" }
        #expect(try await QueueCheck(queue: f.queue).run().map { "\($0.invariant) \($0.message)" } == wrong)
        #expect(try await plant.heal().count == 2)
        #expect(try await plant.findings() == [])
        #expect(try await f.redis("EXISTS", f.keys.worker("w"), f.keys.worker("gone")).int == 0)
    }

    @Test(
        "A key of a batch that is not there keeps nobody from making it, once it is put aside",
        arguments: ["b:new", "b:new:o", "jobs:new"])
    func strays(name: String) async throws {
        let plant = try await HealingTests.Plant(count: 2)
        let f = plant.f
        let wrong = name == "b:new:o" ? "list" : "string"
        let key = "\(f.keys.root):\(name)"
        _ = try await wrong == "list" ? f.redis("RPUSH", key, "x") : f.redis("SET", key, "x")
        #expect(try await plant.findings().map { $0.hasPrefix("Type \(key) is a \(wrong), not a ") } == [true])
        #expect(try await plant.heal().count == 1)
        #expect(try await plant.findings() == [])
        try await f.fill("new", sizes: [1])
        #expect(try await f.findings("new") == [])
        #expect(try await plant.findings() == [])
    }

    @Test("What is left of a batch whose hash is gone is found, and is removed with its name")
    func remains() async throws {
        let plant = try await HealingTests.Plant(count: 4)
        let f = plant.f
        try await f.redis("SET", f.keys.outcomes("b"), "\u{2}")
        try await f.redis("DEL", f.keys.batch("b"))
        func findings() async throws -> [String] {
            try await QueueCheck(queue: f.queue).run().map { "\($0.invariant) \($0.message)" }
        }
        #expect(try await findings().contains("I3 b has keys, and the one that says what it was is gone"))
        #expect(try await f.queue.resolveBroken("b") == "b")
        #expect(try await f.queue.batches.remove(batch: "b", force: true) == .removed)
        #expect(try await f.redis("EXISTS", f.keys.outcomes("b"), f.keys.jobs("b")).int == 0)
        #expect(try await findings() == [])
        await #expect(throws: PrefetchError.self) { try await f.queue.resolveBroken("b") }
    }

    @Test("A queue that is paused has a silent bell by right, and a deadline of a batch that is over goes")
    func pausesAndDeadlines() async throws {
        let plant = try await HealingTests.Plant(count: 2)
        let f = plant.f
        _ = try await f.queue.control.pause(.queue)
        #expect(try await plant.findings() == [])
        #expect(try await plant.heal() == [])
        #expect(try await f.redis("EXISTS", f.keys.bell).int == 0)
        try await f.redis("RPUSH", f.keys.bell, "1")
        #expect(try await plant.findings().first?.hasSuffix("a batch is ready and the queue is paused") == true)
        try await plant.heal()
        #expect(try await f.redis("EXISTS", f.keys.bell).int == 0)
        _ = try await f.queue.control.resume(.queue)
        try await plant.finish()
        try await f.redis("ZADD", f.keys.deadlines, "1", "b")
        #expect(try await plant.findings() == ["I3 it is over, and its deadline is left"])
        try await f.queue.batches.endDue()
        #expect(try await plant.findings() == [])
        #expect(try await f.redis("EXISTS", f.keys.deadlines).int == 0)
    }
}
