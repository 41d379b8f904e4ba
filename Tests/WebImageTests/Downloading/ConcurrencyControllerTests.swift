import Origin
import PrefetchModel
import TestSupport
import Testing

@testable import WebImage

@Suite("The number of transfers that finds itself, on simulated networks", .timeLimit(.minutes(5)))
struct ConcurrencyControllerTests {
    typealias World = ConcurrencySimulation.World

    /// A network, and what becomes of it after half a minute.
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// URLs a second with the best fixed number.
        var best: Double
        var world = World()
        var later: World?

        init(
            _ name: String, best: Double, _ change: (inout World) -> Void, later: ((inout World) -> Void)? = nil
        ) {
            (testDescription, self.best) = (name, best)
            change(&world)
            guard let later else { return }
            var other = world
            later(&other)
            self.later = other
        }
    }

    static let cases = [
        Case("origins of 100 ms, and a processor for 600 URLs a second", best: 600, { $0.processorRate = 600 }),
        Case(
            "the same, where each transfer costs the processor something", best: 562.6,
            {
                $0.processorRate = 600
                $0.crowding = 0.001
            }),
        Case(
            "a link of 20 MB/s", best: 202.3,
            {
                $0.linkRate = 20e6
                $0.size = 100_000
            }),
        Case(
            "1 MB/s from each of many hosts", best: 936,
            {
                $0.serverRate = 1e6
                $0.size = 1e6
                $0.hosts = 1000
            }),
        Case(
            "a router that drops new connections over 300", best: 853.9,
            {
                $0.mostConnections = 300
                $0.latency = 0.3
            }),
        Case(
            "a router that drops new connections over 300, and hosts that are fast", best: 2554,
            {
                $0.mostConnections = 300
                $0.hosts = 1000
            }),
        Case(
            "one dead host among 20", best: 600,
            {
                $0.hosts = 20
                $0.dead = [3]
                $0.processorRate = 600
            }),
        Case(
            "origins that become slow", best: 600,
            { $0.processorRate = 600 }, later: { $0.latency = 0.4 }),
        Case(
            "a link that becomes slow", best: 40.7,
            {
                $0.linkRate = 20e6
                $0.size = 100_000
            }, later: { $0.linkRate = 4e6 }),
        Case(
            "a link that becomes fast", best: 403.7,
            {
                $0.linkRate = 4e6
                $0.size = 100_000
                $0.latency = 0.3
            }, later: { $0.linkRate = 40e6 }),
    ]

    @Test("No fixed number is better than the one that it is compared with", .thorough, arguments: cases)
    func fixed(_ one: Case) {
        let world = one.later ?? one.world
        // With more than the router takes, 2 to 7 % of the URLs fail after three tries of 10 s: no number to compare with.
        let limits = [8, 16, 32, 64, 128, 256, 512, 1024].filter { $0 <= world.mostConnections }
        let rates = limits.map { limit in
            let simulation = ConcurrencySimulation(world, limit: limit, seed: 1)
            _ = simulation.run(5)
            return simulation.run(10).rate
        }
        #expect(abs((rates.max() ?? 0) - one.best) <= 0.02 * one.best, "\(zip(limits, rates).map { $0 })")
    }

    @Test("After 30 s it has nine tenths of the best fixed number, and no URL fails", arguments: cases)
    func best(_ one: Case) {
        let seed = UInt64.random(in: 1...3)
        let simulation = ConcurrencySimulation(one.world, limit: nil, seed: seed)
        var failed = simulation.run(30).failed
        if let later = one.later {
            simulation.world = later
            failed += simulation.run(30).failed
        }
        let result = simulation.run(30)
        failed += result.failed
        #expect(
            result.rate >= 0.9 * one.best,
            "seed \(seed): \(result.rate) URLs/s, limits \(result.limits); \(one.best) with the best fixed one")
        #expect(Double(failed) <= 0.001 * Double(result.ended), "seed \(seed): \(failed) failed")
    }

    @Test("Of as fast numbers the smaller is found: less load for others")
    func knee() {
        let simulation = ConcurrencySimulation(Self.cases[0].world, limit: nil, seed: 1)
        _ = simulation.run(60)
        let result = simulation.run(10)
        #expect(result.limits.allSatisfy { $0 <= 128 }, "the knee is at 60: \(result.limits)")
        #expect(result.reasons.allSatisfy { $0 == .knee || $0 == .probing })
    }

    @Test(
        "Connects that fail on many hosts reduce it, and are its reason; a dead host does not", arguments: [300, 150])
    func backOff(connections: Int) {
        var world = World()
        (world.mostConnections, world.latency) = (connections, 0.3)
        let simulation = ConcurrencySimulation(world, limit: nil, seed: 2)
        let result = simulation.run(30)
        #expect(result.reasons.contains(.connects))
        #expect(result.limits.last! <= connections + connections / 10)
        let other = ConcurrencySimulation(Self.cases[6].world, limit: nil, seed: 2)
        let backOffs = other.run(60).reasons.filter(\.isBackOff)
        #expect(backOffs.isEmpty)
    }

    @Test("A fifth of the hosts is dead: that is the list's, and no reason to be slow")
    func deadHosts() {
        var world = World()
        (world.hosts, world.dead, world.processorRate) = (1000, Set(0..<200), 600)
        let simulation = ConcurrencySimulation(world, limit: nil, seed: 1)
        _ = simulation.run(30)
        let result = simulation.run(20)
        #expect(result.limits.min()! >= 64, "\(result.limits)")
    }

    @Test("Where hosts hold the transfers it does not grow")
    func politeness() {
        var world = World()
        world.politeness = 40
        let simulation = ConcurrencySimulation(world, limit: nil, seed: 1)
        let result = simulation.run(40)
        #expect(result.limits.max()! <= 64 && result.reasons.last == .unused)
    }

    /// Workers that share a router and know nothing of each other: URLs a second of all from 20 to 40 s, and URLs that failed.
    private func share(_ world: World, workers: Int, limit: Int?, seed: UInt64) -> (rate: Double, failed: Int) {
        let all = (0..<workers).map { ConcurrencySimulation(world, limit: limit, seed: seed + UInt64($0)) }
        var (ended, failed) = (0, 0)
        for step in 0..<2000 {
            for index in all.indices {
                let others = all.indices.reduce(0) { $0 + ($1 == index ? 0 : all[$1].connections) }
                all[index].world.mostConnections = max(0, world.mostConnections - others)
                let result = all[index].run(0.02)
                if step >= 1000 { ended += result.ended }
                failed += result.failed
            }
        }
        return (Double(ended) / 20, failed)
    }

    @Test(
        "Several workers share a router as well as the same number of transfers for each would",
        arguments: zip([2, 4], [40, 40] as [UInt64]))
    func router(workers: Int, seed: UInt64) {
        var world = World()
        (world.mostConnections, world.latency) = (300, 0.3)
        let auto = share(world, workers: workers, limit: nil, seed: seed)
        // Each has its part of the router.
        let fixed = share(world, workers: workers, limit: 300 / workers, seed: seed)
        #expect(auto.rate >= 0.8 * fixed.rate && auto.failed == 0, "\(auto), \(fixed)")
    }

    @Test("A short list is no slower than with 32")
    func shortList() {
        var world = World()
        (world.urls, world.processorRate) = (2000, 600)
        let simulation = ConcurrencySimulation(world, limit: nil, seed: 1)
        let fixed = ConcurrencySimulation(world, limit: 32, seed: 1)
        let (auto, with32) = (simulation.run(60), fixed.run(60))
        #expect(auto.ended == 2000 && with32.ended == 2000)
        #expect(auto.seconds <= with32.seconds, "\(auto.seconds) s, \(with32.seconds) s")
    }

    // MARK: Bounds

    private func sample(running: Int, answered: Int) -> TransferSample {
        var sample = TransferSample(seconds: 0.25)
        (sample.running, sample.answered, sample.bytes, sample.hosts) = (running, answered, 1000 * answered, 50)
        return sample
    }

    /// A network without any limit.
    private func grown(_ bounds: ConcurrencyBounds) -> ConcurrencyController {
        var controller = ConcurrencyController()
        for _ in 0..<400 { controller.take(sample(running: controller.limit, answered: controller.limit), bounds) }
        return controller
    }

    @Test("Descriptors, memory and processors bound it, each by its name")
    func bounds() {
        let descriptors = grown(ConcurrencyBounds(descriptors: 100, memory: 500))
        #expect(descriptors.limit <= 100 && descriptors.limit >= 70)
        let memory = grown(ConcurrencyBounds(descriptors: 500, memory: 64))
        #expect(memory.limit <= 64 && memory.limit >= 45)
        var controller = grown(ConcurrencyBounds())
        #expect(controller.limit <= 1024 && controller.limit >= 700)
        controller.take(sample(running: 700, answered: 700), ConcurrencyBounds(memory: 64))
        #expect(controller.limit == 64 && controller.reason == .memory, "at once")
        #expect(grown(ConcurrencyBounds(processor: 1)).limit <= 16)
        #expect(grown(ConcurrencyBounds(descriptors: 1)).limit == ConcurrencyController.least)
    }

    /// A network that gives a worker as much as it has transfers, as one does that is shared with other workers: the greatest number in a
    /// minute, and the last.
    /// * `delays`: of so many new connections.
    private func shared(_ delays: (Int) -> [Double]) -> (most: Int, last: Int) {
        var controller = ConcurrencyController()
        var (most, connections) = (0, 0)
        for _ in 0..<240 {
            var sample = sample(running: controller.limit, answered: controller.limit)
            sample.delays = delays(max(0, controller.limit - connections))
            connections = max(connections, controller.limit)
            most = max(most, controller.limit)
            controller.take(sample, ConcurrencyBounds())
        }
        return (most, controller.limit)
    }

    @Test(
        "Where the packets of new connections wait in a queue more transfers are no gain, but one slow host is no queue"
    )
    func fullWay() {
        let full = shared { Array(repeating: 0.2, count: $0) }
        #expect(full.most <= 48 && full.last <= 40, "\(full)")
        let free = shared { Array(repeating: 0.002, count: $0) }
        #expect(free.most >= 700, "\(free)")
        let oneHost = shared { count in (0..<count).map { $0 % 3 == 0 ? 0.5 : 0.001 } }
        #expect(oneHost.most >= 700, "\(oneHost)")
        // Too few to say something.
        let few = shared { Array(repeating: 0.2, count: min(3, $0)) }
        #expect(few.most >= 700, "\(few)")
    }

    @Test("Without transfers nothing is learnt, and nothing divides by zero")
    func idle() {
        var controller = ConcurrencyController()
        for _ in 0..<100 {
            controller.take(TransferSample(seconds: 0), ConcurrencyBounds())
            controller.take(TransferSample(seconds: 0.25), ConcurrencyBounds())
            controller.take(sample(running: 16, answered: 0), ConcurrencyBounds())
        }
        #expect(controller.limit == 16)
    }

    @Test(
        "Any samples leave it within its bounds", arguments: [UInt64.random(in: 0...UInt64.max), 7])
    func anything(seed: UInt64) {
        var random = SplitMix64(state: seed)
        var controller = ConcurrencyController()
        for _ in 0..<5000 {
            var any = TransferSample(seconds: Double.random(in: 0...2, using: &random))
            any.running = Int.random(in: 0...2000, using: &random)
            any.answered = Int.random(in: 0...500, using: &random)
            any.bytes = Int.random(in: 0...1_000_000_000, using: &random)
            any.hosts = Int.random(in: 0...20, using: &random)
            any.failures = (0..<Int.random(in: 0...12, using: &random)).map { host in
                TransferSample.HostFailure(
                    TransferSample.HostFailure.Kind.allCases.randomElement(using: &random)!, of: "h\(host)",
                    count: Int.random(in: 1...100, using: &random), isKnown: Bool.random(using: &random),
                    answers: Int.random(in: 0...9, using: &random))
            }
            let most = Int.random(in: 1...2000, using: &random)
            controller.take(
                any, ConcurrencyBounds(descriptors: most, processor: Double.random(in: 0...1, using: &random)))
            #expect((4...1024).contains(controller.limit), "seed \(seed)")
            #expect(controller.limit <= max(4, most) || any.seconds == 0, "seed \(seed)")
        }
    }

    @Test("Failures that go on with fewer transfers are the list's if hosts are dead, not if they answer in between")
    func goingOn() {
        func findings(answers: Int) -> [FailureWatch.Finding] {
            var watch = FailureWatch()
            var found: [FailureWatch.Finding] = []
            for number in 0..<40 {
                var sample = TransferSample(seconds: 0.25)
                (sample.answered, sample.hosts) = (200, 20)
                sample.failures = (0..<5).map { host in
                    TransferSample.HostFailure(.connect, of: "h\(host)", count: 3, isKnown: true, answers: answers)
                }
                guard let finding = watch.add(sample, at: 0.25 * Double(number)) else { continue }
                found.append(finding)
                if case .trouble(let trouble) = finding { watch.blame(trouble) }
            }
            return found
        }
        let trouble = FailureWatch.Finding.trouble(FailureWatch.Trouble(kind: .connect, isNew: false))
        #expect(findings(answers: 0) == [trouble, trouble, .unrelated])
        #expect(findings(answers: 1) == [trouble, trouble, .shared])
    }

    // MARK: What is counted

    @Test("Failures are counted by host; hosts that never answered count once")
    func tally() {
        let tally = TransferTally()
        tally.didAnswer("before")
        _ = tally.sample(running: 0, runningBytes: 5, now: 1)
        tally.didAnswer("a")
        tally.didAnswer("a")
        tally.didFail("a", .body)
        tally.didFail("b", .name)
        let first = tally.sample(running: 3, runningBytes: 105, now: 1.5)
        #expect(first.seconds == 0.5 && first.answered == 2 && first.hosts == 1 && first.bytes == 100)
        #expect(
            Set(first.failures.map { "\($0.host) \($0.kind) \($0.count) \($0.isKnown) \($0.answers)" })
                == ["a body 1 true 2", "b name 1 false 0"])
        tally.didFail("b", .name)
        tally.didFail("a", .connect)
        let second = tally.sample(running: 3, runningBytes: 105, now: 2)
        #expect(second.failures.map(\.host) == ["a"] && second.failures.first?.isKnown == true)
        #expect(second.answered == 0 && second.bytes == 0)
    }
}
