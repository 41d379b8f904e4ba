internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// `prefetch-coord fsck`: the invariants of batches.
struct FsckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fsck",
        abstract: "Check the counts, jobs and files of batches.",
        usage: "prefetch-coord fsck [<batch>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord fsck --cache ./cache
              prefetch-coord fsck urls-7f3a --json

            It changes nothing: it prints each disagreement, and the commands that get rid of
            it; exit code 1 if there is one. With --cache it also checks that every image this
            cache should have is there.

            A batch that Redis half lost is removed and submitted again: images that are in
            the cache end as hit. What belongs to no batch is healed by the workers.
            """)

    @Argument(help: "Batch, or the beginning of its name. (default: all)", completion: .batch)
    var batch: String?

    @Flag(help: "Print every finding. (default: the first \(FsckFindings.mostShown))")
    var all = false

    @Flag(help: "Print one JSON object.")
    var json = false

    @OptionGroup(title: "Output") var secrets: SecretOptions
    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>
    @OptionGroup(title: "Redis") var readOnly: SettingOptions<LowerCaches>

    func validate() throws {
    }

    func run() async throws {
        try await Session.with(location.record) { session in
            let ids = try await ids(session.queue)
            var findings = FsckFindings(most: all ? .max : FsckFindings.mostShown)
            if batch == nil {
                for finding in try await QueueCheck(queue: session.queue).run() { findings.add(finding) }
            }
            var elsewhere: [(id: String, images: [BatchCache: Int])] = []
            for (id, check) in zip(ids, try await BatchCheck.checks(of: ids, queue: session.queue)) {
                for finding in try await check.run() { findings.add(finding) }
                let others = try await checkFiles(id, session, &findings)
                if !others.isEmpty { elsewhere.append((id, others)) }
            }
            let dead = await Self.dead(session.queue)
            let commands = try await commands(findings.broken.sorted(), session.queue)
            try FsckAnswer(ids: ids, findings: findings, elsewhere: elsewhere, dead: dead, commands: commands).sheet
                .print(asJSON: json)
        }
    }

    private func ids(_ queue: PrefetchQueue) async throws -> [String] {
        batch == nil ? try await queue.keySpace.everyBatch() : [try await queue.catalog.resolve(batch)]
    }

    /// What removes these batches, and makes them again.
    private func commands(
        _ broken: [String], _ queue: PrefetchQueue
    ) async throws -> [(purpose: String, command: String)] {
        guard !broken.isEmpty else { return [] }
        let known = try await queue.batches.statuses(of: broken)
        return broken.flatMap { id in
            let name = Shell.quoted(id)
            let status = known.first { $0.id.hasBytes(of: id) }
            let again =
                if let parent = status?.retryOf {
                    "retry \(Shell.quoted(parent))"
                } else {
                    "submit \(status.map(\.listWords) ?? "FILE") --name \(name)"
                }
            return [("remove it", "rm --force \(name)"), ("make it again", again)].map {
                ($0, "\(Shell.program) \(TerminalText.escaped($1))\(location.words)")
            }
        }
    }

    /// The dead-letter list; nil if the key has another type (reported as a finding).
    private static func dead(_ queue: PrefetchQueue) async -> (elements: [[UInt8]], count: Int) {
        do throws(RedisError) { return try await queue.jobs.dead() } catch { return ([], 0) }
    }

    /// I5: a URL that counts as an image has one in the cache. Needs the cache and the list.
    private func checkFiles(
        _ id: String, _ session: Session, _ findings: inout FsckFindings
    ) async throws(PrefetchError) -> [BatchCache: Int] {
        guard let folder = location.cacheFolder, let status = try await session.status(of: id) else { return [:] }
        var configuration = DiskCache.Configuration()
        configuration.isReadOnly = true
        configuration.readOnlyDirectories = readOnly.record.readOnlyCaches
        do throws(PrefetchError) {
            guard let disk = try? DiskCache(directory: folder, configuration: configuration) else {
                throw PrefetchError(.notFound, "there is no cache \(folder)")
            }
            let result = try await CacheCheck(queue: session.queue, cache: disk).run(status) { findings.add($0) }
            if !result.lost.isEmpty { Console.note(BatchText.lost(result.lost, of: status)) }
            return result.elsewhere
        } catch {
            guard error.kind == .notFound || error.kind == .unreadableList else { throw error }
            Console.note(
                "note: the files of \(TerminalText.escaped(id)) are not checked: \(TerminalText.escaped(error.message))"
            )
            return [:]
        }
    }
}

/// The findings of a check: all are counted, and those that are shown are kept.
struct FsckFindings {
    /// Findings that are shown where nothing else is said.
    static let mostShown = 20

    let most: Int
    private(set) var shown: [BatchCheck.Finding] = []
    private(set) var count = 0
    /// Batches that cannot stay as they are.
    private(set) var broken: Set<String> = []
    /// Whether something is wrong that heals.
    private(set) var isQueueWrong = false

    var hidden: Int { count - shown.count }

    mutating func add(_ finding: BatchCheck.Finding) {
        count += 1
        if shown.count < most { shown.append(finding) }
        // A deleted file does not mean that Redis lost data.
        guard finding.invariant != "I5" else { return }
        if finding.batch.isEmpty || finding.heals { isQueueWrong = true } else { broken.insert(finding.batch) }
    }
}

/// What a check found, and the commands that help.
struct FsckAnswer: Record {
    let ids: [String]
    let findings: FsckFindings
    let elsewhere: [(id: String, images: [BatchCache: Int])]
    let dead: (elements: [[UInt8]], count: Int)
    let commands: [(purpose: String, command: String)]

    static let fields: [Field<FsckAnswer>] = [
        .version, Field("checked", \.ids), Field("findings", \.findings.shown),
        Field(
            "finding_count", about: "All of them; findings has the first 20, or all with --all.", \.findings.count),
        Field("elsewhere", about: "Images that are in the caches of other machines.", \.images),
        Field("dead", \.dead.count),
        Field("dead_elements") { $0.dead.elements.map { Masked.sentence(PrefetchJob.excerpt(of: $0)) } },
        Field("commands", about: "The commands that remove the batches with findings, and make them again.") {
            $0.commands.map(\.command)
        },
    ]

    private var images: [ElsewhereImages] {
        elsewhere.flatMap { id, images in
            images.sorted { ($1.value, $0.key.id) < ($0.value, $1.key.id) }
                .map { ElsewhereImages(batch: id, images: $0.value, cache: $0.key) }
        }
    }

    var sheet: Sheet {
        var sheet = Sheet(self)
        sheet.add(
            findings.shown.map { finding in
                let batch = finding.batch.isEmpty ? "queue" : TerminalText.escaped(finding.batch)
                return "\(batch): \(finding.invariant): \(TerminalText.escaped(finding.message))"
            })
        if findings.hidden > 0 {
            sheet.add("and \(Wording.count(findings.hidden, "more finding")): --all shows every one")
        }
        sheet.add(
            elsewhere.compactMap { id, images in
                CacheText.elsewhere(images).map { "\(TerminalText.escaped(id)): \($0)" }
            })
        sheet.add(dead.elements.map { "dead: \(PrefetchJob.excerpt(of: $0))" })
        if dead.count > dead.elements.count {
            sheet.add("and \(Wording.count(dead.count - dead.elements.count)) more on the dead-letter list")
        }
        sheet.add(
            findings.count == 0
                ? "\(Wording.count(ids.count, "batch", "batches")), everything agrees"
                : Wording.count(findings.count, "finding"))
        if findings.isQueueWrong {
            sheet.notes.append(
                "sets and lists of the queue are healed by the next worker that has no work for four times its --lease")
        }
        sheet.notes += commands.map { "\($0.purpose): \($0.command)" }
        if findings.count > 0 { sheet.exitCode = 1 }
        return sheet
    }
}

extension BatchCheck.Finding: Record {
    static let fields: [Field<Self>] = [
        Field("batch", \.batch), Field("invariant", \.invariant), Field("message") { Masked.sentence($0.message) },
    ]
}

private struct ElsewhereImages: Record {
    let batch: String, images: Int, cache: BatchCache

    static let fields: [Field<Self>] = [Field("batch", \.batch), Field("images", \.images), Field("cache", \.cache)]
}
