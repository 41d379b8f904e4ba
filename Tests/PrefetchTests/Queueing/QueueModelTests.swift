import Origin
import Redis
import Testing
import WebImage

@testable import Prefetch

@Suite("The queue under random interleavings", .timeLimit(.minutes(5)))
struct QueueModelTests {
    @Test(
        "Whatever the order, however often a call is sent and whoever dies, every URL is counted exactly once",
        arguments: Array(1...15) + [UInt64.random(in: 100...UInt64.max)])
    func exactlyOnce(seed: UInt64) async throws {
        var model = try await QueueModel(seed: seed)
        for step in 0..<250 {
            try await model.step()
            if step % 50 == 49 { try await model.check("step \(step) of seed \(seed)") }
        }
        try await model.drain()
        try await model.check("the end of seed \(seed)")
        for feed in model.feeds {
            let status = try #require(try await model.fixture.queue.batches.status(of: feed.batch))
            #expect(status.state == .done && status.counts.finished == feed.total, "seed \(seed)")
            let codes = try await model.fixture.queue.results.outcomes(of: feed.batch, range: 0..<feed.total)
            #expect(codes == (0..<feed.total).map { model.settled[feed.batch]?[$0]?.rawValue ?? 0 }, "seed \(seed)")
        }
        let status = try #require(try await model.fixture.queue.batches.status(of: "cancelled"))
        #expect(status.counts.finished == status.total, "seed \(seed)")
        #expect(try await model.fixture.redis("EXISTS", model.fixture.keys.bell).int == 0, "seed \(seed)")
        #expect(try await model.fixture.redis("EXISTS", model.fixture.keys.dead).int == 0, "seed \(seed)")
    }
}

/// Three workers, two batches and one that will be cancelled, driven by a seed. It knows of every URL how it was settled first.
private struct QueueModel {
    struct Feed {
        var batch: String
        var jobs: [PrefetchJob]
        var next = 0
        var total: Int { jobs.reduce(0) { $0 + $1.entries.count } }
        var pushed: Int { jobs[..<next].reduce(0) { $0 + $1.entries.count } }
    }

    struct Worker {
        var name: String
        var sequence = 0
        var jobs: [PrefetchJob] = []
    }

    let fixture: QueueFixture
    private(set) var feeds: [Feed] = []
    private(set) var settled: [String: [Int: PrefetchOutcome]] = [:]
    private var doomed: Feed
    private var workers: [Worker] = []
    private var ghosts: [Worker] = []
    private var names = 0
    private var random: SplitMix64

    init(seed: UInt64) async throws {
        fixture = try await QueueFixture()
        var random = SplitMix64(state: seed)
        func feed(_ batch: String) -> Feed {
            let sizes = (0..<12).map { _ in [1, 2, 7, 20].randomElement(using: &random) ?? 1 }
            return Feed(batch: batch, jobs: QueueFixture.jobs(batch, sizes: sizes))
        }
        doomed = feed("cancelled")
        feeds = [feed("a"), feed("b")]
        for feed in feeds + [doomed] {
            let order = PrefetchOrder.allCases.randomElement(using: &random) ?? .fifo
            try await fixture.open(
                feed.batch, priority: PrefetchPriority.allCases.randomElement(using: &random) ?? .normal,
                fields: [("order", order.rawValue), ("total", String(feed.total))])
        }
        self.random = random
        for _ in 0..<3 { workers.append(try await newWorker()) }
    }

    private mutating func newWorker() async throws -> Worker {
        names += 1
        let name = "w\(names)"
        try await fixture.join(name)
        return Worker(name: name)
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    mutating func step() async throws {
        let index = Int.random(in: 0..<workers.count, using: &random)
        switch Int.random(in: 0..<100, using: &random) {
        case ..<20: try await feed()
        case ..<45: try await claim(index)
        case ..<70:
            var worker = workers[index]
            try await report(&worker)
            workers[index] = worker
        case ..<76: try await die(index)
        case ..<84: _ = try await fixture.queue.workers.reap(most: Int.random(in: 1...3, using: &random))
        case ..<88: try await release(index)
        case ..<92: try await split(index)
        case ..<94:
            let job = chance(50) ? workers[index].jobs.first?.claimName : nil
            try await fixture.queue.jobs.mark(worker: workers[index].name, claim: job)
        case ..<96:
            let trouble = chance(20)
            _ = try await fixture.queue.workers.beat(
                worker: workers[index].name, lease: 60_000, trouble: trouble,
                batches: [BatchIdentity(id: "a", nonce: "a")], about: [])
        case ..<97: try await fixture.redis("DEL", fixture.keys.hold)
        case ..<98: _ = try await chance(50) ? fixture.queue.batches.cancel(batch: "cancelled") : nil
        case ..<99: try await control()
        default: try await haunt()
        }
    }

    /// Somebody pauses, resumes, or changes a batch's turn.
    private mutating func control() async throws {
        let batch = ["a", "b", "cancelled"].randomElement(using: &random) ?? "a"
        let target: QueueControl.PauseTarget =
            chance(50) ? .batch(batch) : chance(50) ? .queue : .worker(workers[0].name)
        for _ in 0...(chance(30) ? 1 : 0) {
            switch Int.random(in: 0..<3, using: &random) {
            case 0: _ = try await fixture.queue.control.pause(target)
            case 1: _ = try await fixture.queue.control.resume(target)
            default:
                let priority = PrefetchPriority.allCases.randomElement(using: &random) ?? .normal
                let order = PrefetchOrder.allCases.randomElement(using: &random) ?? .fifo
                _ = try await fixture.queue.control.change(
                    batch,
                    ["priority": [priority.rawValue]].merging(chance(50) ? ["order": [order.rawValue]] : [:]) { $1 })
            }
        }
    }

    /// The next jobs of some batch, sometimes twice, sometimes at a wrong offset; its seal at the end.
    private mutating func feed(all: Bool = false) async throws {
        let which = Int.random(in: 0...2, using: &random)
        var feed = which < 2 ? feeds[which] : doomed
        if chance(10) {
            let result = try await fixture.push(feed.batch, offset: feed.pushed + 1, sizes: [1])
            #expect(result == .at(feed.pushed) || result == .closed("cancelled") || result == .closed("done"))
        }
        if feed.next == feed.jobs.count {
            for _ in 0...(chance(30) ? 1 : 0) {
                _ = try await fixture.queue.batches.seal(batch: feed.batch, total: feed.total)
            }
            return
        }
        let end = min(feed.jobs.count, feed.next + Int.random(in: 1...3, using: &random))
        let jobs = feed.jobs[feed.next..<end]
        let count = jobs.reduce(0) { $0 + $1.entries.count }
        func push() async throws -> QueueBatches.PushResult {
            try await fixture.queue.batches.push(
                batch: feed.batch, offset: feed.pushed, window: all ? "all" : "6", count: count,
                jobs: jobs.map { $0.encoded() })
        }
        let before = feed.pushed
        guard case .pushed(let pushed) = try await push() else { return }
        #expect(pushed == before + count)
        if chance(30) {
            let again = try await push()
            #expect(again == .at(pushed))
        }
        feed.next = end
        if which < 2 { feeds[which] = feed } else { doomed = feed }
    }

    private mutating func claim(_ index: Int, count: Int? = nil) async throws {
        workers[index].sequence += 1
        let count = count ?? Int.random(in: 1...3, using: &random)
        let result = try await fixture.queue.jobs.claim(
            worker: workers[index].name, sequence: workers[index].sequence, count: count, lease: 60_000)
        if result == .paused { return }
        let first = try await fixture.claim(workers[index].name, workers[index].sequence, count: count)
        // Where there was nothing to get, a repeated call may find what came meanwhile; nothing did here.
        if chance(30) {
            let again = try await fixture.claim(workers[index].name, workers[index].sequence, count: count)
            #expect(again == first)
        }
        workers[index].jobs += first.map(\.job)
    }

    /// Outcomes of a job the worker thinks it has: of some URLs, or of all with the job's end.
    private mutating func report(_ worker: inout Worker, everything: Bool = false) async throws {
        guard let job = worker.jobs.randomElement(using: &random) else { return }
        let isFinal = everything || chance(50)
        let outcomes: [PrefetchOutcome?] = job.entries.map { _ in
            isFinal || chance(40) ? PrefetchOutcome.allCases.randomElement(using: &random) : nil
        }
        let report = QueueFixture.report(job, outcomes, isFinal: isFinal)
        let results = try await fixture.queue.reports.send(
            chance(30) ? [report, report] : [report], worker: worker.name)
        for item in results[0].counted ?? [] {
            let known = settled[job.batch, default: [:]].updateValue(item.outcome, forKey: job.base + item.position)
            #expect(known == nil, "\(job.batch) \(job.base + item.position) was settled twice")
            #expect(outcomes[item.position] == item.outcome)
        }
        if results.count == 2 { #expect(results[1].counted?.isEmpty ?? true) }
        if isFinal { worker.jobs.removeAll { $0 == job } }
    }

    private mutating func die(_ index: Int) async throws {
        ghosts.append(workers[index])
        try await fixture.expire(workers[index].name)
        workers[index] = try await newWorker()
    }

    /// A worker that was thought dead goes on: it beats or reports.
    private mutating func haunt() async throws {
        guard let index = ghosts.indices.randomElement(using: &random) else { return }
        if chance(30) {
            _ = try await fixture.queue.workers.beat(
                worker: ghosts[index].name, lease: 60_000, trouble: false, batches: [], about: [])
        }
        var ghost = ghosts[index]
        try await report(&ghost)
        ghosts[index] = ghost
    }

    private mutating func release(_ index: Int) async throws {
        let leaving = chance(30)
        let job = workers[index].jobs.randomElement(using: &random)
        for _ in 0...(chance(30) ? 1 : 0) {
            try await fixture.queue.jobs.release(
                worker: workers[index].name, jobs: leaving ? [] : job.map { [$0.claimName] } ?? ["none"],
                leaving: leaving)
        }
        if leaving { workers[index] = try await newWorker() } else { workers[index].jobs.removeAll { $0 == job } }
    }

    private mutating func split(_ index: Int) async throws {
        guard let job = workers[index].jobs.first(where: { $0.entries.count > 1 }) else { return }
        let parts = job.split(into: Int.random(in: 2...8, using: &random))
        for _ in 0...(chance(30) ? 1 : 0) {
            try await fixture.queue.jobs.split(worker: workers[index].name, claim: job.claim, into: parts)
        }
        workers[index].jobs.removeAll { $0 == job }
    }

    /// Everybody finishes what they have, the dead are reaped, the lists are fed to their end.
    mutating func drain() async throws {
        _ = try await fixture.queue.batches.cancel(batch: "cancelled")
        try await fixture.redis("DEL", fixture.keys.hold)
        for target in [.queue, .batch("a"), .batch("b")] + workers.map({ QueueControl.PauseTarget.worker($0.name) }) {
            _ = try await fixture.queue.control.resume(target)
        }
        for ghost in ghosts { try await fixture.expire(ghost.name) }
        for _ in 0..<2000 {
            while try await fixture.queue.workers.reap(most: 5) != .nobody {}
            try await feed(all: true)
            for index in workers.indices {
                try await claim(index, count: 4)
                var worker = workers[index]
                while !worker.jobs.isEmpty { try await report(&worker, everything: true) }
                workers[index] = worker
            }
            if try await fixture.queue.catalog.running().isEmpty { return }
        }
        Issue.record("not drained")
    }

    func check(_ when: String) async throws {
        for batch in ["a", "b", "cancelled"] {
            let findings = try await BatchCheck(queue: fixture.queue, batch: batch).run()
            #expect(findings == [], "\(when)")
        }
    }
}
