import Redis
import Testing
import WebImage

@testable import Prefetch

@Suite("An open batch under random interleavings", .timeLimit(.minutes(5)))
struct OpenBatchModelTests {
    @Test(
        "Whoever appends what, dies and sends again: every URL of every list is there once, under its line",
        arguments: Array(1...12) + [UInt64.random(in: 100...UInt64.max)])
    func exactlyOnce(seed: UInt64) async throws {
        var model = try await OpenBatchModel(seed: seed)
        for step in 0..<200 {
            try await model.step()
            if step % 40 == 39 { try await model.check("step \(step) of seed \(seed)") }
        }
        try await model.finish()
        try await model.check("the end of seed \(seed)")
        let status = try #require(try await model.fixture.queue.batches.status(of: "b"))
        #expect(status.state == .done && status.counts.finished == status.total, "seed \(seed)")
        #expect(model.ended.count == status.total, "seed \(seed)")
        // The batch is its lists one after the other, each once.
        let segments = try await model.fixture.queue.lists.segments(of: "b")
        #expect(Set(segments.map(\.hash)).count == segments.count, "seed \(seed)")
        #expect(Set(segments.map(\.hash)) == model.added, "seed \(seed)")
        var expected: [String] = []
        for segment in segments {
            expected += (0..<segment.total).map { "\(segment.line + 2 * $0 + 1) http://\(segment.hash)/\($0)" }
        }
        #expect((0..<status.total).map { model.ended[$0] ?? "none" } == expected, "seed \(seed)")
    }
}

/// Two appenders with lists of their own, a worker, and somebody who closes the batch. Each list has a comment behind every URL.
private struct OpenBatchModel {
    struct Appender {
        var names: [String]
        var segment: ListSegment?
        var offset = 0
    }

    let fixture: QueueFixture
    /// What was done with each index: line and URL.
    private(set) var ended: [Int: String] = [:]
    /// Hashes of lists that took their place.
    private(set) var added: Set<String> = []
    private var appenders: [Appender] = []
    private var sizes: [String: Int] = [:]
    private var sequence = 0
    private var jobs: [PrefetchJob] = []
    private var random: SeededGenerator

    init(seed: UInt64) async throws {
        fixture = try await QueueFixture()
        random = SeededGenerator(seed: seed)
        try await fixture.open(fields: [("open", "1"), ("total", "0"), ("lines", "0"), ("list", ""), ("hash", "")])
        try await fixture.join("w")
        for index in 0..<2 {
            let names = (0..<4).map { "l\(index)x\($0)" }
            for name in names { sizes[name] = [0, 1, 3, 20].randomElement(using: &random) ?? 1 }
            appenders.append(Appender(names: names))
        }
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    mutating func step() async throws {
        switch Int.random(in: 0..<100, using: &random) {
        case ..<60: try await append(Int.random(in: 0..<2, using: &random))
        case ..<70: die(Int.random(in: 0..<2, using: &random))
        case ..<98: try await work()
        default: if chance(10) { _ = try await fixture.queue.lists.close(batch: "b") }
        }
    }

    /// The next step of one appender: its list's place, or its next jobs, either sometimes twice.
    private mutating func append(_ index: Int) async throws {
        guard let name = appenders[index].names.first else { return }
        guard let segment = appenders[index].segment else {
            var list = URLList(path: "/\(name)", total: sizes[name] ?? 0, hash: name)
            list.lines = 2 * list.total
            let nonce = "n\(UInt64.random(in: 0...UInt64.max, using: &random))"
            let result = try await fixture.queue.lists.append(list, to: "b", nonce: nonce, host: "h")
            if chance(30) {
                let again = try await fixture.queue.lists.append(list, to: "b", nonce: nonce, host: "h")
                if case .listed(let segment, _, let pushed) = result {
                    #expect(again == .listed(segment, isNew: false, pushed: pushed))
                } else {
                    #expect(again == result)
                }
            }
            switch result {
            case .listed(let segment, let isNew, let pushed):
                #expect(isNew != added.contains(name))
                added.insert(name)
                appenders[index].segment = segment
                appenders[index].offset = pushed
            case .closed(let why):
                #expect(why == "sealed" || why == "done")
                appenders[index].names.removeFirst()
            }
            return
        }
        let offset = appenders[index].offset
        guard offset < segment.end, segment.total > 0 else {
            appenders[index].names.removeFirst()
            appenders[index].segment = nil
            return
        }
        // Its turn has not come: it asks with the offset it would begin at, and is told where Redis is.
        let from = max(offset, segment.base)
        let count = min(segment.end - from, Int.random(in: 1...5, using: &random))
        let job = PrefetchJob(
            batch: "b", base: from,
            entries: (from..<(from + count)).map {
                let at = $0 - segment.base
                return .init(line: segment.line + 2 * at + 1, url: "http://\(segment.hash)/\(at)")
            })
        for _ in 0...(chance(30) ? 1 : 0) {
            let result = try await fixture.queue.batches.push(
                batch: "b", offset: from, window: "4", count: count, of: segment, jobs: [job.encoded()])
            switch result {
            case .pushed(let pushed): appenders[index].offset = pushed
            case .at(let pushed): appenders[index].offset = pushed
            case .full: break
            case .closed(let why): Issue.record("closed: \(why)")
            }
        }
    }

    /// It knows nothing of its list any more: the same command again.
    private mutating func die(_ index: Int) {
        appenders[index].segment = nil
        appenders[index].offset = 0
    }

    private mutating func work() async throws {
        sequence += 1
        jobs += try await fixture.claim("w", sequence, count: Int.random(in: 1...3, using: &random)).map(\.job)
        guard let job = jobs.randomElement(using: &random) else { return }
        jobs.removeAll { $0 == job }
        let count = try await fixture.finish(job, "w", .hit)
        #expect(count == job.entries.count)
        for (position, entry) in job.entries.enumerated() {
            let before = ended.updateValue("\(entry.line) \(entry.url)", forKey: job.base + position)
            #expect(before == nil, "index \(job.base + position) twice")
        }
    }

    /// Both append what they have left, the batch is closed, everything is worked off.
    mutating func finish() async throws {
        for _ in 0..<3000 {
            for index in appenders.indices { try await append(index) }
            try await work()
            guard appenders.allSatisfy({ $0.names.isEmpty }) else { continue }
            _ = try await fixture.queue.lists.close(batch: "b")
            if try await fixture.field("state", of: "b") == "done" { return }
        }
        Issue.record("not finished")
    }

    func check(_ when: String) async throws {
        let findings = try await fixture.findings("b")
        #expect(findings == [], "\(when)")
    }
}

/// SplitMix64: the same numbers for the same seed.
private struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
