internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord workers`: who works on the queue, and who did.
struct WorkersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "workers",
        abstract: "List the workers of the queue, and those that left or were lost today.",
        usage: "prefetch-coord workers [<options>]",
        discussion: """
            Examples:
              prefetch-coord workers --redis redis://host:6379/0
              prefetch-coord workers --json | jq '.workers[] | select(.state == "lost")'

            running: its lease is valid. overdue: its lease has expired, its jobs are still
            its own. left: it shut down. lost: its jobs went to other workers.

            prefetch-coord set changes their transfers, prefetch-coord pause holds one.
            """)

    @Flag(help: "Print one JSON object.")
    var json = false

    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    /// The most ended workers that are shown.
    private static let mostGone = 20

    func run() async throws {
        try await Session.with(location.record, readsOnly: true) { session in
            var sheet = try await Self.answer(session.queue, words: location.words)
            if sheet.lines.contains("no workers") { sheet.notes.append(try hint(session)) }
            try sheet.print(asJSON: json)
        }
    }

    /// The workers that are there, and the last ones that are gone.
    static func answer(_ queue: PrefetchQueue, words: String) async throws -> Sheet {
        let records = try await queue.workerRecords.all()
        let about = QueueAnswer(
            name: queue.catalog.queueName, settings: try await queue.views.snapshot(newest: 0).settings)
        var sheet = Sheet(WorkersAnswer(queue: about, workers: records))
        if let line = about.line(words: words) { sheet.add(line) }
        let present = records.prefix { $0.leaseLeft != nil }
        if present.isEmpty { sheet.add("no workers") }
        sheet.add(table: Array(records.prefix(present.count + mostGone)))
        func names(_ workers: [String]) -> String { workers.map { TerminalText.escaped($0) }.joined(separator: ", ") }
        let caches = WorkerRecord.caches(of: Array(present))
        if caches.count > 1 {
            sheet.add("\(caches.count) caches, each with the images that its own workers fetched:")
            sheet.add(caches.map { "  \($0.id.prefix(8))  \(names($0.workers))" })
        }
        let rules = WorkerRecord.rules(of: Array(present))
        if rules.count > 1 {
            sheet.add("the workers' settings differ; URLs that one refuses are left to the others:")
            sheet.add(
                rules.map { "  \(names($0.workers))  \($0.refuses.map { TerminalText.escaped($0) } ?? "defaults")" })
        }
        for held in WorkerRecord.sandboxes(of: Array(present)) {
            let who = held.workers.count == present.count ? "" : " of \(names(held.workers))"
            sheet.add("sandbox of the decoders\(who): \(TerminalText.escaped(held.text))")
        }
        let hidden = records.count - present.count - mostGone
        if hidden > 0 { sheet.add("and \(Wording.count(hidden)) more that are gone: --json has them") }
        return sheet
    }

    /// How to start one. The private Redis of a cache lives as long as a command that uses it, so its workers come with `run`.
    private func hint(_ session: Session) throws(PrefetchError) -> String {
        let queue = location.queue == "default" ? "" : " --queue \(location.queue)"
        switch try location.record.place() {
        case .cache(let folder):
            let folder = Shell.quoted(Shell.path(folder))
            return "run brings its own: \(Shell.program) run urls.txt --cache \(folder)"
        case .server:
            let folder = Shell.quoted(Shell.path(location.cacheFolder ?? "./cache"))
            return
                "start one: prefetch-worker --redis \(Shell.quoted(session.redis.redactedURL)) --cache \(folder)\(queue)"
        }
    }
}
