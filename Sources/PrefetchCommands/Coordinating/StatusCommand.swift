internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord status`: one look at a batch, or at all.
struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Print the state of one batch, or of all batches and workers.",
        usage: "prefetch-coord status [<batch>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord status --cache ./cache
              prefetch-coord status urls-7f3a --json

            Without a batch the newest 100 and all that are running are printed, oldest
            first, and how many were left out.
            """)

    /// Batches that are read unless another number is asked for.
    private static let usualLimit = 100

    @Argument(help: "Batch, or the beginning of its name. (default: all)")
    var batch: String?

    @Flag(help: "Print one JSON object.")
    var json = false

    @Option(help: .value("n", "Batches to print: the newest, and all that are running. (default: \(Self.usualLimit))"))
    var limit: Int?

    @Flag(help: "Print all batches.")
    var all = false

    @OptionGroup(title: "Output") var secrets: SecretOptions
    @OptionGroup(title: "Redis") var location: RedisLocation

    func validate() throws {
        guard limit ?? 1 >= 1 else { throw ValidationError("--limit is a number of batches, at least 1") }
        guard batch == nil || limit == nil && !all else {
            throw ValidationError("--limit and --all go without a batch")
        }
        guard limit == nil || !all else { throw ValidationError("give --limit or --all, not both") }
    }

    private func ids(_ queue: PrefetchQueue) async throws -> (ids: [String], others: Int) {
        if batch != nil { return ([try await queue.catalog.resolve(batch)], 0) }
        return all ? (try await queue.catalog.ids(), 0) : try await queue.catalog.newest(limit ?? Self.usualLimit)
    }

    func run() async throws {
        try await Session.with(location, looks: true) { session in
            let queue = session.queue
            let (ids, leftOut) = try await ids(queue)
            var statuses = try await queue.batches.statuses(of: ids)
            // Of one batch everything that is added up is of one moment.
            let look = batch == nil ? nil : try await queue.views.look(at: ids[0])
            if let look, !statuses.isEmpty { statuses[0].take(look.status) }
            let snapshot = try await queue.views.snapshot(newest: 0)
            let lost = try await queue.workerRecords.lost(since: snapshot.at - 600_000)
            let limit = RunLimit(workers: snapshot.workers, batches: statuses)
            if json {
                let batches = statuses.map {
                    LookJSON.adding(look, to: BatchJSON.object($0))
                }
                Console.print(
                    Self.object(
                        batches, leftOut: leftOut, snapshot, QueueText.object(queue, snapshot.orders),
                        HealthText.object(snapshot, lost: lost, statuses), LimitText.object(limit)
                    ).text)
                return
            }
            let load = WorkerLoad(snapshot)
            if batch != nil, let status = statuses.first {
                try await printOne(status, load, look?.counts ?? [:], queue)
                if status.state == .running {
                    let id = TerminalText.escaped(status.id)
                    Console.print("  what its URLs wait for: prefetch-coord why --oldest \(id)\(location.words)")
                }
            } else {
                if let line = QueueText.line(snapshot.orders, words: location.words) { Console.print(line) }
                if statuses.isEmpty { Console.print(TerminalText.escaped(try await queue.catalog.absence())) }
                if leftOut > 0 {
                    Console.print(
                        "\(Wording.count(leftOut, "older batch", "older batches")) not shown: --all, or --limit N")
                }
                for status in statuses { Console.print(BatchText.line(status, load, isColoured: isColoured)) }
                Self.printWorkers(snapshot.workers)
            }
            if let limit { Console.print((batch == nil ? "" : "  ") + LimitText.line(limit)) }
            let waits = statuses.contains { $0.state == .running } && snapshot.workers.isEmpty
            for line in HealthText.lines(snapshot, lost: lost, noWorker: waits) { Console.print(line) }
        }
    }

    private var isColoured: Bool { Colours.areOn(STDOUT_FILENO) }

    private func printOne(
        _ status: BatchStatus, _ load: WorkerLoad, _ counts: [String: PrefetchCounts], _ queue: PrefetchQueue
    ) async throws {
        Console.print(BatchText.line(status, load, isColoured: isColoured))
        Console.print(BatchText.images(status.counts))
        let list = TerminalText.escaped(PathText.shown(status.listPath))
        Console.print(
            status.isOpen
                ? "  list \(list), \(Wording.count(status.pushed)) URLs so far; the rest comes through a pipe"
                : "  list \(list), \(Wording.count(status.pushed)) of its \(Wording.count(status.total)) URLs queued"
        )
        Console.print(
            "  \(status.ended > 0 ? "took" : "running for") \(Wording.seconds(status.elapsed)), \(Wording.bytes(status.counts.bytes)) downloaded"
        )
        if let latency = FetchText.latency(status.fetches.durations) { Console.print("  transfers took \(latency)") }
        if let line = BatchText.limits(status) { Console.print(line) }
        let chain = try await BatchChain.read(status.id, queue: queue)
        if let line = BatchText.merged(chain, seenFrom: status.id) { Console.print(line) }
        if status.isHeld {
            let what = status.isPaused ? TerminalText.escaped(status.id) : "--all"
            Console.print(
                "  \(BatchText.pause(status) ?? ""); resume it with: prefetch-coord resume \(what)\(location.words)")
        }
        if status.isWaitingForMemory {
            Console.print("  queueing waits: Redis is full; it continues as workers free memory")
        }
        if status.isWaitingForList {
            let command =
                status.retryOf == nil
                ? "submit --resume \(Shell.quoted(status.listPath))" : "retry \(TerminalText.escaped(status.id))"
            Console.print(
                "  its list is not queued to its end; continue with: prefetch-coord \(command)\(location.words)")
        }
        for (host, message) in try await queue.reports.refusals(of: status.id).prefix(20) {
            Console.print(
                "  refused \(TerminalText.escaped(host)): \(TerminalText.escaped(message)); workers open it with --allow-net"
            )
        }
        for (worker, counts) in counts.sorted(by: { $0.key < $1.key }) {
            Console.print(
                "  \(TerminalText.escaped(worker)) finished \(Wording.count(counts.finished)) skipped \(Wording.count(counts.skipped))"
            )
        }
    }

    private static func printWorkers(_ workers: [String: WorkerRecord]) {
        if workers.isEmpty { Console.print("no workers") }
        for (name, worker) in workers.sorted(by: { $0.key < $1.key }) {
            let report = worker.report
            var line = "worker \(TerminalText.escaped(name))  \(WorkerText.flight(report))"
            line += "  finished \(Wording.count(report.finished)) skipped \(Wording.count(report.skipped))"
            if report.isPaused { line += "  paused" }
            let trouble = TerminalText.escaped(report.trouble)
            if let held = report.held {
                line +=
                    "  held: \(TerminalText.escaped(held.reason)) since \(UTCTime.text(milliseconds: held.since)): \(trouble)"
            } else if !trouble.isEmpty {
                line += "  paused: \(trouble)"
            }
            if !report.warning.isEmpty { line += "  warning: \(TerminalText.escaped(report.warning))" }
            Console.print(line)
        }
    }

    private static func object(
        _ batches: [JSONText], leftOut: Int, _ snapshot: QueueSnapshot, _ queue: JSONText, _ health: JSONText,
        _ limit: JSONText
    ) -> JSONText {
        .object([
            ("v", .int(1)), ("queue", queue),
            ("batches", .array(batches)), ("batches_left_out", .int(leftOut)),
            (
                "workers",
                .array(
                    snapshot.workers.sorted { $0.key < $1.key }.map { WorkerText.object($0.value) })
            ),
            ("cache", CacheLoad(snapshot.workers.values.map(\.report)).object),
            ("health", health), ("limit", limit),
        ])
    }
}
