import Origin
import Testing
import WebImage

@testable import Demonstration
@testable import PrefetchCommands

@Suite(.timeLimit(.minutes(5)))
struct DemoPlanTests {
    private let plan = DemoPlan(count: 2000)

    private var planted: [UInt8] { plan.entries.map { $0.behaviour.outcome.rawValue } }

    @Test
    func `the shares are the promised ones and every URL is another`() {
        let counts = Dictionary(grouping: plan.entries, by: \.behaviour).mapValues(\.count)
        #expect(
            counts == [
                .image: 1829, .slow: 40, .heals: 3, .missing: 100, .cut: 20, .loop: 2, .page: 2, .stalls: 2, .closed: 2,
            ])
        #expect(Set(plan.entries.map(\.url)).count == 2000)
        #expect(plan.entries.contains { $0.url == plan.exampleURL })
        #expect(plan.entries == DemoPlan(count: 2000).entries)
    }

    @Test
    func `without libwebp there is no WebP, and every other kind`() {
        #expect(DemoPlan.kinds(hasWebP: false) == [.jpeg, .progressiveJPEG, .png, .gif, .animatedGIF])
        #expect(DemoPlan.kinds(hasWebP: true).contains(.webp))
        #expect(Set(plan.entries.map(\.kind)) == Set(DemoPlan.kinds))
    }

    @Test(arguments: [100, 101, 199, 200, 1234])
    func `any number of URLs has every behaviour`(count: Int) {
        let plan = DemoPlan(count: count)
        #expect(plan.entries.count == count)
        #expect(Set(plan.entries.map(\.behaviour)).count == DemoPlan.Behaviour.allCases.count)
    }

    @Test
    func `outcomes as expected are no difference, and hits are as good as downloads`() {
        #expect(DemoResult(plan, outcomes: planted).lines == ["all 2,000 outcomes as expected."])
        let hits = planted.map { $0 == PrefetchOutcome.downloaded.rawValue ? PrefetchOutcome.hit.rawValue : $0 }
        #expect(DemoResult(plan, outcomes: hits).isAsExpected)
    }

    @Test(arguments: DemoPlan.Behaviour.allCases)
    func `any other outcome of any kind of URL is named`(behaviour: DemoPlan.Behaviour) throws {
        let index = try #require(plan.entries.firstIndex { $0.behaviour == behaviour })
        let codes = [0] + PrefetchOutcome.allCases.map(\.rawValue)
        for code in codes where !behaviour.allows(PrefetchOutcome(rawValue: code)) {
            var outcomes = planted
            outcomes[index] = code
            let verdict = DemoResult(plan, outcomes: outcomes)
            #expect(
                verdict.differences == [
                    DemoResult.Difference(
                        line: index + 1, url: plan.entries[index].url, expected: behaviour.outcome,
                        found: PrefetchOutcome(rawValue: code))
                ])
            #expect(verdict.lines.last == "not as expected: 1 of 2,000 outcomes.")
        }
        #expect(
            codes.count { behaviour.allows(PrefetchOutcome(rawValue: $0)) } == (behaviour.outcome.isSkipped ? 1 : 2))
    }

    @Test
    func `outcomes that are missing are differences, twenty of which are printed`() {
        let verdict = DemoResult(plan, outcomes: Array(planted.dropLast(30)))
        #expect(verdict.differences.count == 30)
        #expect(verdict.lines.count == 21)
        #expect(verdict.lines[0].hasSuffix("found no outcome"))
        #expect(verdict.lines[20] == "not as expected: 30 of 2,000 outcomes.")
    }

    @Test
    func `the next step is the script of the clone if the program was built by it`() {
        for (program, command) in [
            (".build/release/prefetch-coord", "scripts/run"),
            ("/a b/.build/release/prefetch-coord", "'/a b/scripts/run'"),
            ("/usr/bin/prefetch-coord", "/usr/bin/prefetch-coord run"), ("prefetch-coord", "prefetch-coord run"),
        ] { #expect(DemoCommand.runCommand(of: program) == command) }
        #expect(DemoCommand.pace(DemoOrigin.Sent(), isAll: false) == "every image from the cache")
    }

    @Test
    func `the manifest has a body for exactly the URLs that end with an image, and it is what the origin sends`()
        async throws
    {
        let plan = DemoPlan(count: 100)
        let bodies = await DemoOrigin.bodies(plan)
        #expect(bodies.map { $0 == nil } == plan.entries.map { $0.behaviour.outcome.isSkipped })
        let origin = try await DemoOrigin(plan)
        var policy = ImageDownloader.Configuration()
        policy.addressPolicy = AddressPolicy(allow: [try #require(CIDR("127.0.0.0/8"))])
        policy.connectTo = origin.connectTo
        let downloader = try ImageDownloader(configuration: policy)
        for (entry, body) in zip(plan.entries, bodies) where entry.behaviour == .image || entry.behaviour == .heals {
            let found = try await downloader.download(entry.url).body.withUnsafeBytes { Array($0) }
            #expect(found == body, "\(entry.url)")
        }
        await downloader.invalidateSessionAndCancel()
        await origin.stop()
    }
}
