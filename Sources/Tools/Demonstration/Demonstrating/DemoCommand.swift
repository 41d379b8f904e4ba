package import ArgumentParser
internal import Origin
internal import Prefetch
internal import PrefetchCommands
internal import Redis
internal import WebImage

/// `prefetch-coord demo`: a run against a built-in server, with known expected outcomes.
package struct DemoCommand: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Download good and broken images from a built-in server.",
        usage: "prefetch-coord demo [<options>]",
        discussion: """
            Examples:
              prefetch-coord demo
              prefetch-coord demo --cache /tmp/demo -n 2 --count 500

            A server in this process answers with images of every kind, with 404, slowly,
            with cut and stalled bodies, redirect loops, HTML, and 503 that heals. Exit
            code: 0 every URL ended as it has to, 1 some did not, which are named.
            """)

    @Option(help: .folder("Cache folder."))
    var cache = "./demo-cache"

    @Option(name: [.customShort("n"), .long], help: "Worker processes.")
    var workers = 4

    @Option(help: "URLs, from 100 to 100,000.")
    var count = 2000

    @Flag(help: "Print the result as one JSON object.")
    var json = false

    @Flag(name: [.customShort("q"), .long], help: "No progress lines.")
    var quiet = false

    package init() {}

    package func validate() throws {
        guard (1...256).contains(workers) else { throw ValidationError("--workers is a number from 1 to 256") }
        guard DemoPlan.counts.contains(count) else {
            throw ValidationError(
                "--count is a number from \(DemoPlan.counts.lowerBound) to \(DemoPlan.counts.upperBound)")
        }
        guard !cache.isEmpty else { throw ValidationError("--cache needs a folder") }
    }

    package func run() async throws {
        for warning in try CacheOpening.forWriting(cache).warnings { Console.note("warning: \(warning)") }
        let plan = DemoPlan(count: count)
        let list = try plan.writeList(cache: cache)
        let origin: DemoOrigin
        do throws(OriginError) { origin = try await DemoOrigin(plan) } catch {
            throw PrefetchError(error, hint: "free some ports or descriptors")
        }
        if !quiet { Console.note(Self.introduction(plan, origin)) }
        do {
            try await VerifiedRun.run(arguments(list, origin), list: list, workers: workers) { queue, status in
                let outcomes = try await queue.results.outcomes(of: status.id, range: 0..<status.total)
                let verdict = DemoResult(plan, outcomes: outcomes)
                report(status, verdict, plan)
                return verdict.isAsExpected ? 0 : 1
            }
            await origin.stop()
        } catch {
            await origin.stop()
            throw error
        }
    }

    private func arguments(_ list: URLList, _ origin: DemoOrigin) -> [String] {
        var words = [
            list.path, "--cache", cache, "--workers", String(workers), "--max-per-host", "0", "--retry-failed",
        ]
        // Longer than the slowest response that is still an image, and short enough for three attempts of a stalled one.
        words += ["--timeout", "2s"]
        for place in origin.connectTo { words += ["--connect-to", place] }
        if json { words.append("--json") }
        if quiet { words.append("--quiet") }
        return words
    }

    private static func introduction(_ plan: DemoPlan, _ origin: DemoOrigin) -> String {
        let parts: [(DemoPlan.Behaviour, String)] = [
            (.image, "images"), (.slow, "slow images"), (.heals, "images after a 503"),
            (.missing, "missing ones (404)"),
            (.cut, "cut bodies"), (.stalls, "stalled bodies"), (.loop, "redirect loops"), (.page, "HTML pages"),
            (.closed, "closed ports"),
        ]
        let words = parts.map { "\(Wording.count(plan.count(of: $0))) \($1)" }.joined(separator: ", ")
        return "demo: \(Wording.count(plan.entries.count)) URLs of \(origin.address): \(words)"
    }

    private func report(_ status: BatchStatus, _ verdict: DemoResult, _ plan: DemoPlan) {
        if json {
            // The differences are for humans, so they go to stderr.
            if !verdict.isAsExpected { for line in verdict.lines { Console.note(line) } }
            Console.print(BatchJSON.object(status).adding("planted", .bool(verdict.isAsExpected)).text)
            return
        }
        for line in BatchText.summary(status) + verdict.lines { Console.print(line) }
        let cache = "--cache " + Shell.quoted(cache)
        let own = "\(Shell.program) demo \(cache) -n \(workers) --count \(count)"
        Console.print("")
        Console.print("what was skipped:    \(Shell.program) failures \(TerminalText.escaped(status.id)) \(cache)")
        Console.print("URL -> path:         \(Shell.program) cache path \(plan.exampleURL) \(cache)")
        Console.print("check every file:    \(Shell.program) cache verify \(cache)")
        Console.print("again, from cache:   \(own)")
    }
}

extension JSONText {
    fileprivate func adding(_ name: String, _ value: JSONText) -> JSONText {
        guard case .object(let members) = self else { return self }
        return .object(members + [(name, value)])
    }
}
