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

    @OptionGroup(title: "Redis") var location: RedisLocation

    /// The most ended workers that are shown.
    private static let mostGone = 20

    func run() async throws {
        try await Session.with(location, looks: true) { session in
            let records = try await session.queue.workerRecords.all()
            let orders = try await session.queue.views.snapshot(newest: 0).orders
            if json {
                Console.print(
                    JSONText.object([
                        ("v", .int(1)), ("queue", QueueText.object(session.queue, orders)),
                        ("workers", .array(records.map(WorkerText.object))),
                    ]).text)
            } else {
                if let line = QueueText.line(orders, words: location.words) { Console.print(line) }
                try show(records, session)
            }
        }
    }

    private func show(_ records: [WorkerRecord], _ session: Session) throws(PrefetchError) {
        let present = records.prefix { $0.leaseLeft != nil }
        if present.isEmpty { Console.print("no workers") }
        for record in records.prefix(present.count + Self.mostGone) { Console.print(WorkerText.line(record)) }
        let hidden = records.count - present.count - Self.mostGone
        let caches = WorkerRecord.caches(of: Array(present))
        if caches.count > 1 {
            Console.print("\(caches.count) caches, each with the images that its own workers fetched:")
            for cache in caches {
                Console.print(
                    "  \(cache.id.prefix(8))  \(cache.workers.map { TerminalText.escaped($0) }.joined(separator: ", "))"
                )
            }
        }
        let rules = WorkerRecord.rules(of: Array(present))
        if rules.count > 1 {
            Console.print("the workers' settings differ; URLs that one refuses are left to the others:")
            for rule in rules {
                let names = rule.workers.map { TerminalText.escaped($0) }.joined(separator: ", ")
                Console.print("  \(names)  \(rule.refuses.map { TerminalText.escaped($0) } ?? "defaults")")
            }
        }
        if hidden > 0 { Console.print("and \(Wording.count(hidden)) more that are gone: --json has them") }
        if present.isEmpty { Console.note(try hint(session)) }
    }

    /// How to start one. The private Redis of a cache lives as long as a command that uses it, so its workers come with `run`.
    private func hint(_ session: Session) throws(PrefetchError) -> String {
        let queue = location.queue == "default" ? "" : " --queue \(location.queue)"
        switch try location.place() {
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

/// A worker in words and as JSON.
enum WorkerText {
    /// `in flight 90 of auto 96 (growing)`; `in flight 8 of 32, checking 3, and 4 from which no byte comes`: those hold no slot.
    static func flight(_ report: WorkerReport) -> String {
        var text = "in flight \(Wording.count(report.transferring))"
        if let most = report.maxConcurrentDownloads {
            text += report.concurrencyReason == nil ? " of \(Wording.count(most))" : " of auto \(Wording.count(most))"
        }
        if let reason = report.concurrencyReason { text += " (\(reason.text))" }
        if report.checking > 0 { text += ", checking \(Wording.count(report.checking))" }
        if report.stalled > 0 { text += ", and \(Wording.count(report.stalled)) from which no byte comes" }
        return text
    }

    static func line(_ record: WorkerRecord) -> String {
        var parts = [
            "\(TerminalText.escaped(record.id))  \(record.state.rawValue)\(record.report.isPaused ? ", paused" : "")"
        ]
        if record.leaseLeft != nil {
            parts.append(flight(record.report))
            if let names = record.report.names, let text = NameText.line(names) { parts.append(text) }
        }
        parts.append(
            "finished \(Wording.count(record.report.finished)) skipped \(Wording.count(record.report.skipped))")
        parts.append(Wording.bytes(record.report.bytes))
        if let silence = record.silence { parts.append("seen \(seconds(silence)) ago") }
        if let left = record.leaseLeft {
            parts.append(left > 0 ? "lease \(seconds(left))" : "lease over \(seconds(-left))")
        }
        if record.ended > 0 { parts.append("at \(UTCTime.text(milliseconds: record.ended))") }
        if let held = record.report.held {
            parts.append(
                "held: \(TerminalText.escaped(held.reason)) since \(UTCTime.text(milliseconds: held.since)): "
                    + TerminalText.escaped(record.report.trouble))
        } else if !record.report.trouble.isEmpty {
            parts.append("paused: \(TerminalText.escaped(record.report.trouble))")
        }
        if !record.report.warning.isEmpty {
            parts.append("warning: \(TerminalText.escaped(record.report.warning))")
        }
        // Its name says so already, unless it had to take another.
        let place = "\(record.report.host):\(record.report.pid)"
        if !record.report.host.isEmpty, place != record.id { parts.append("is \(TerminalText.escaped(place))") }
        return parts.joined(separator: "  ")
    }

    private static func seconds(_ milliseconds: Int) -> String { Wording.seconds(Double(milliseconds) / 1000) }

    /// A worker as `status`, `workers` and the report have it.
    static func object(_ record: WorkerRecord) -> JSONText {
        let report = record.report
        func seconds(_ milliseconds: Int?) -> JSONText { milliseconds.map { .number(Double($0) / 1000) } ?? .null }
        func time(_ value: Int) -> JSONText { value > 0 ? .string(UTCTime.text(milliseconds: value)) : .null }
        func sentence(_ text: String) -> JSONText { text.isEmpty ? .null : .string(text) }
        let figures = (WorkerReport.figures + WorkerReport.counts).filter { $0.about.place != .record }
        return .object(
            [
                ("id", .string(record.id)), ("state", .string(record.state.rawValue)), ("host", .string(report.host)),
                ("pid", .int(report.pid)), ("version", .string(report.version)), ("since", time(report.since)),
                ("ended", time(record.ended)), ("seen_seconds_ago", seconds(record.silence)),
                ("lease_left_seconds", seconds(record.leaseLeft)), ("paused", .bool(report.isPaused)),
                ("limit", .string(report.limit.rawValue)), ("trouble", sentence(report.trouble)),
                ("held", report.held.map { .string($0.reason) } ?? .null),
                ("held_since", time(report.held?.since ?? 0)),
                ("warning", sentence(report.warning)),
                ("wanted_concurrent_downloads", report.wantedConcurrency.map(QueueText.object) ?? .null),
                ("concurrency_reason", report.concurrencyReason.map { .string($0.rawValue) } ?? .null),
                ("names", report.names.map(NameText.object) ?? .null), ("cache", sentence(report.cache)),
                ("rules", report.refuses.map { .string($0) } ?? .null),
            ] + figures.map { ($0.name, $0.value(report).map { .int($0) } ?? .null) })
    }
}
