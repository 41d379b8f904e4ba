internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord fsck`: the invariants of batches.
struct FsckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fsck",
        abstract: "Check that a batch's counts, jobs and files agree. Changes nothing.",
        usage: "prefetch-coord fsck [<batch>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord fsck --cache ./cache
              prefetch-coord fsck urls-7f3a --json
              prefetch-coord fsck urls-7f3a --history ./history

            Exit code 1 where something does not agree, and the command that mends it. With
            --cache it also looks whether every image that was counted is there; with
            --history whether what the workers did explains every outcome: ok, recovered,
            lost, duplicated or unexpected.
            """)

    @Argument(help: "A batch, or the beginning of its name; all by default.")
    var batch: String?

    @Option(help: "The folder in which the workers kept what they did (prefetch-worker --history).")
    var history: String?

    @Option(help: "With --history: a file of lines 'number of the line, TAB, outcome or outcome|outcome'.")
    var expect: String?

    @Flag(help: "One object of JSON.")
    var json = false

    @OptionGroup(title: "Secrets") var secrets: SecretOptions
    @OptionGroup(title: "Where") var location: RedisLocation
    @OptionGroup(title: "Where") var readOnly: ReadOnlyCacheOptions

    func validate() throws {
        guard history != nil || expect == nil else { throw ValidationError("--expect goes with --history") }
        guard expect == nil || batch != nil else { throw ValidationError("--expect is about one batch: name it") }
    }

    func run() async throws {
        let histories = try history.map { try HistoryOutput(folder: $0, expect: expect) }
        try await Session.with(location) { session in
            let ids = batch == nil ? try await session.queue.everyBatch() : [try await session.queue.resolve(batch)]
            var findings = batch == nil ? try await QueueCheck(queue: session.queue).run() : []
            var pasts: [(id: String, result: HistoryCheck.Result)] = []
            for (id, check) in zip(ids, try await BatchCheck.checks(of: ids, queue: session.queue)) {
                findings += try await check.run()
                findings += try await missingFiles(id, session)
                if let histories { pasts.append((id, try await histories.check(id, session.queue))) }
            }
            let dead = await Self.dead(session.queue)
            // A file that somebody deleted is nothing that was lost in Redis.
            let broken = findings.filter { $0.invariant != "I5" }.map(\.batch)
            let commands = Set(broken).sorted().map {
                "prefetch-coord repair\($0.isEmpty ? "" : " \(TerminalText.escaped($0))")\(location.words)"
            }
            if json {
                let past = histories.map { _ in pasts.map { HistoryOutput.json($0.id, $0.result) } }
                Console.print(FsckText.object(ids, findings, dead, commands, past).text)
            } else {
                for finding in findings { Console.print(FsckText.line(finding)) }
                for element in dead.elements { Console.print("dead: \(PrefetchJob.excerpt(of: element))") }
                if dead.count > dead.elements.count {
                    Console.print("and \(Wording.count(dead.count - dead.elements.count)) more on the list of the dead")
                }
                for past in pasts {
                    for line in HistoryOutput.lines(past.id, past.result) { Console.print(line) }
                }
                Console.print(
                    findings.isEmpty ? "\(ids.count) batches, everything agrees" : "\(findings.count) findings")
                for command in commands { Console.note("repair it with: \(command)") }
            }
            if !findings.isEmpty || pasts.contains(where: { !$0.result.isGood }) { throw ExitCode(1) }
        }
    }

    /// The list of the dead; none where that is no list, which is among the findings.
    private static func dead(_ queue: PrefetchQueue) async -> (elements: [[UInt8]], count: Int) {
        do throws(RedisError) { return try await queue.dead() } catch { return ([], 0) }
    }

    /// I5: a URL that counts as an image has one in the cache. Needs the cache and the list.
    private func missingFiles(_ id: String, _ session: Session) async throws -> [BatchCheck.Finding] {
        guard let folder = location.cacheFolder, let status = try await session.queue.status(of: id) else { return [] }
        var configuration = DiskCache.Configuration()
        configuration.isReadOnly = true
        configuration.readOnlyDirectories = readOnly.directories
        guard let disk = try? DiskCache(directory: folder, configuration: configuration),
            let entries = try? await BatchEntries(of: status, queue: session.queue)
        else {
            Console.note(
                "note: the list of \(TerminalText.escaped(id)) is not readable any more; its files are not checked")
            return []
        }
        let rule = CacheKeyRule(status.options.cacheKey) ?? .url
        var findings: [BatchCheck.Finding] = []
        var index = 0
        var codes: [UInt8] = []
        try await entries.forEach { entry async throws(PrefetchError) in
            if index % 16_384 == 0 {
                // What Redis has no byte of reads as open; the list may be longer than the batch says it is.
                let range = index..<index + 16_384
                codes = try await session.outcomes(of: id, range: range)
            }
            defer { index += 1 }
            let code = codes[index % 16_384]
            guard code != 0, let outcome = PrefetchOutcome(code: code), !outcome.isSkipped else { return true }
            if !disk.containsData(forKey: rule.key(for: entry.url)) {
                findings.append(
                    BatchCheck.Finding(
                        batch: id, invariant: "I5",
                        message: "line \(entry.line) ended \(outcome.name), but its file is not there"))
            }
            return true
        }
        return findings
    }
}

/// What a check found, in words and as JSON.
enum FsckText {
    static func line(_ finding: BatchCheck.Finding) -> String {
        let batch = finding.batch.isEmpty ? "queue" : TerminalText.escaped(finding.batch)
        return "\(batch): \(finding.invariant): \(TerminalText.escaped(finding.message))"
    }

    static func object(
        _ ids: [String], _ findings: [BatchCheck.Finding], _ dead: (elements: [[UInt8]], count: Int),
        _ repairs: [String], _ history: [JSONText]?
    ) -> JSONText {
        let parts: [(String, JSONText)] = [
            ("v", .int(1)), ("checked", .array(ids.map { .string($0) })),
            (
                "findings",
                .array(
                    findings.map {
                        .object([
                            ("batch", .string($0.batch)), ("invariant", .string($0.invariant)),
                            ("message", .sentence($0.message)),
                        ])
                    })
            ),
            ("dead", .int(dead.count)),
            ("dead_elements", .array(dead.elements.map { .sentence(PrefetchJob.excerpt(of: $0)) })),
            ("repair", .array(repairs.map { .string($0) })),
        ]
        return .object(parts + (history.map { [("history", .array($0))] } ?? []))
    }
}
