package import ArgumentParser
internal import Origin
internal import Prefetch
internal import PrefetchCommands
internal import Redis
internal import WebImage

/// `prefetch-coord demo`: a run that needs no network and knows what has to come out.
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
            with truncated and stalled bodies, redirect loops, HTML pages, and 503 followed
            by an image. Every URL has an expected outcome. Exit code: 0 all outcomes are
            as expected, 1 some are not; they are listed.
            """)

    private static let defaults = (cache: "./demo-cache", workers: 4, count: 2000)

    @Option(help: .folder("Cache folder."))
    var cache = Self.defaults.cache

    @Option(name: [.customShort("n"), .long], help: .count("Worker processes, 1 to 256."))
    var workers = Self.defaults.workers

    @Option(help: .count("URLs, 100 to 100,000."))
    var count = Self.defaults.count

    @Flag(help: "Print the result as one JSON object.")
    var json = false

    @Flag(name: [.customShort("q"), .long], help: "No progress and no notes.")
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
        if !quiet { for line in Self.introduction(plan, origin) { Console.note(line) } }
        do {
            try await VerifiedRun.run(arguments(list, origin), list: list, workers: workers) { queue, status in
                let outcomes = try await queue.results.outcomes(of: status.id, range: 0..<status.total)
                let verdict = DemoResult(plan, outcomes: outcomes)
                report(status, verdict, plan, origin.imagesSent)
                return verdict.isAsExpected ? 0 : 1
            }
            await origin.stop()
        } catch {
            await origin.stop()
            throw error
        }
    }

    /// What a person would have to type for the same run.
    private func arguments(_ list: ListStream, _ origin: DemoOrigin) -> [String] {
        var words = [
            list.list.path, "--cache", cache, "--workers", String(workers), "--max-per-host", "0", "--retry-failed",
        ]
        // Longer than the slowest answer that is still an image; the three tries of a stalled one are what the demo takes.
        words += ["--timeout", "800ms"]
        for place in origin.connectTo { words += ["--connect-to", place] }
        if json { words.append("--json") }
        if quiet { words.append("--quiet") }
        return words
    }

    /// Each line fits into 80 columns.
    private static func introduction(_ plan: DemoPlan, _ origin: DemoOrigin) -> [String] {
        func counts(_ parts: [(DemoPlan.Behaviour, String)]) -> String {
            parts.map { "\(Wording.count(plan.count(of: $0))) \($1)" }.joined(separator: ", ")
        }
        let missing = CodecLibraries.optional.filter { $0.format == .webp && !$0.isAvailable }
        return [
            "demo: \(Wording.count(plan.entries.count)) URLs of a built-in server, \(origin.address)",
            "  good: " + counts([(.image, "images"), (.slow, "slow images"), (.heals, "images after a 503")]),
            "  bad:  " + counts([(.missing, "missing (404)"), (.cut, "truncated"), (.stalls, "stalled")]) + ",",
            "        " + counts([(.loop, "redirect loops"), (.page, "HTML pages"), (.closed, "closed ports")]),
        ] + missing.map { "  no WebP: \($0.description)" }
    }

    private func report(_ status: BatchStatus, _ verdict: DemoResult, _ plan: DemoPlan, _ sent: DemoOrigin.Sent) {
        if json {
            // What differs is for a person to read.
            if !verdict.isAsExpected { for line in verdict.lines { Console.note(line) } }
            Console.print(BatchAnswer(status, isAsExpected: verdict.isAsExpected).line)
            return
        }
        for line in BatchText.summary(status, pace: Self.pace(sent, isAll: status.counts[.downloaded] == 0))
            + verdict.lines
        { Console.print(line) }
        let option = "--cache " + Shell.quoted(cache)
        var again = "\(Shell.program) demo"
        if cache != Self.defaults.cache { again += " " + option }
        if workers != Self.defaults.workers { again += " -n \(workers)" }
        if count != Self.defaults.count { again += " --count \(count)" }
        Console.print("")
        Console.print("failed URLs:         \(Shell.program) failures \(TerminalText.escaped(status.id)) \(option)")
        Console.print("path of a URL:       \(Shell.program) cache path \(plan.exampleURL) \(option)")
        Console.print("check every file:    \(Shell.program) cache verify \(option)")
        Console.print("again, from cache:   \(again)")
        Console.print("your own list next:  \(Self.runCommand(of: CommandLine.arguments.first)) urls.txt")
    }

    /// Retries of a few URLs take most of the time, which has nothing to do with the rate at which images come.
    /// * `isAll`: the cache had all images. A worker may have asked for the first bytes of one, to learn whose its failures are.
    static func pace(_ sent: DemoOrigin.Sent, isAll: Bool) -> String {
        guard sent.images > 0, !isAll else { return "every image from the cache" }
        let rate = Wording.count(Int(Double(sent.images) / sent.seconds))
        return "\(Wording.count(sent.images)) images in the first \(Wording.seconds(sent.seconds)) (\(rate)/s)"
    }

    /// What runs a list: the script of the clone if the program stands where that script builds it.
    static func runCommand(of program: String?) -> String {
        let program = program ?? "prefetch-coord"
        if program.hasPrefix(".build/") { return "scripts/run" }
        if let folder = program.firstRange(of: "/.build/") {
            return Shell.quoted(program[..<folder.lowerBound] + "/scripts/run")
        }
        return Shell.quoted(program) + " run"
    }
}
