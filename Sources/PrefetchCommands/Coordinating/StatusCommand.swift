internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord status`: a batch, or all of them.
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

    @Argument(help: "Batch, or the beginning of its name. (default: all)", completion: .batch)
    var batch: String?

    @Flag(help: "Print one JSON object.")
    var json = false

    @Option(help: .value("n", "Batches to print: the newest, and all that are running. (default: \(Self.usualLimit))"))
    var limit: Int?

    @Flag(help: "Print all batches.")
    var all = false

    @OptionGroup(title: "Output") var secrets: SecretOptions
    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

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
        try await Session.with(location.record, readsOnly: true) { session in
            try await answer(session.queue).print(asJSON: json)
        }
    }

    /// The state of a batch, or of all with the workers of the queue.
    func answer(_ queue: PrefetchQueue) async throws -> Sheet {
        let (ids, leftOut) = try await ids(queue)
        var statuses = try await queue.batches.statuses(of: ids)
        // Of one batch everything that is added up is of one moment.
        let batchSnapshot = batch == nil ? nil : try await queue.views.snapshot(of: ids[0])
        if let batchSnapshot, !statuses.isEmpty { statuses[0].take(batchSnapshot.status) }
        let snapshot = try await queue.views.snapshot(newest: 0)
        let lost = try await queue.workerRecords.lost(since: snapshot.at - 600_000)
        let limit = RunLimit(workers: snapshot.workers, batches: statuses)
        let about = QueueAnswer(name: queue.catalog.queueName, settings: snapshot.settings)
        let health = Health(queue: snapshot, lost: lost, statuses: statuses)
        var sheet = Sheet(
            StatusAnswer(
                queue: about, batches: statuses.map { BatchAnswer($0, batchSnapshot) }, leftOut: leftOut,
                snapshot: snapshot,
                health: health, limit: limit))
        let load = WorkerLoad(snapshot)
        if batch != nil, let status = statuses.first {
            sheet.add(try await lines(status, load, batchSnapshot?.counts ?? [:], queue))
        } else {
            if let line = about.line(words: location.words) { sheet.add(line) }
            if statuses.isEmpty { sheet.add(TerminalText.escaped(try await queue.catalog.absence())) }
            if leftOut > 0 {
                sheet.add("\(Wording.count(leftOut, "older batch", "older batches")) not shown: --all, or --limit N")
            }
            sheet.add(statuses.map { BatchText.line($0, load, isColoured: isColoured) })
            if snapshot.workers.isEmpty { sheet.add("no workers") }
            sheet.add(table: snapshot.workers.sorted { $0.key < $1.key }.map(\.value))
        }
        if let limit { sheet.add((batch == nil ? "" : "  ") + LimitText.line(limit)) }
        let waits = statuses.contains { $0.state == .running } && snapshot.workers.isEmpty
        sheet.add(health.lines(noWorker: waits))
        return sheet
    }

    private var isColoured: Bool { Colours.areOn(STDOUT_FILENO) }

    private func lines(
        _ status: BatchStatus, _ load: WorkerLoad, _ counts: [String: PrefetchCounts], _ queue: PrefetchQueue
    ) async throws -> [String] {
        let id = TerminalText.escaped(status.id)
        let list = TerminalText.escaped(status.listName)
        var lines = [
            BatchText.line(status, load, isColoured: isColoured), BatchText.images(status.counts),
            status.expectedTotal == nil
                ? "  list \(list), \(Wording.count(status.pushed)) URLs so far; the rest comes through a pipe"
                : "  list \(list), \(Wording.count(status.pushed)) of its \(status.totalText) URLs queued",
            "  \(status.ended > 0 ? "took" : "running for") \(Wording.seconds(status.elapsed)), \(Wording.bytes(status.counts.bytes)) downloaded",
        ]
        if status.ended > 0, status.retriedBy == nil, status.settings.keep > 0 {
            let end = UTCTime.text(milliseconds: status.ended + Int(clamped: status.settings.keep * 1000))
            lines.append("  results are kept until \(end) (--keep)")
        }
        if let latency = FetchText.latency(status.fetches.durations) { lines.append("  transfers took \(latency)") }
        lines += [
            BatchText.limits(status), BatchText.shards(status).map { "  " + $0 },
            BatchText.merged(try await BatchChain.read(status.id, queue: queue), seenFrom: status.id),
        ].compactMap(\.self)
        if status.isEffectivelyPaused {
            let what = status.isPaused ? id : "--all"
            lines.append(
                "  \(BatchText.pause(status) ?? ""); resume it with: prefetch-coord resume \(what)\(location.words)")
        }
        if status.isWaitingForMemory {
            lines.append("  queueing waits: Redis is full; it continues as workers free memory")
        }
        if status.isWaitingForList {
            let command =
                status.retryOf == nil ? "submit --resume \(status.listWords)" : "retry \(id)"
            lines.append(
                status.retryOf == nil && ListPlace.standing(of: status) == .changed
                    ? "  its list was changed before it was queued to its end: queue the list as it is now, what is in the cache "
                        + "is not downloaded again, and end this batch: prefetch-coord cancel \(id)\(location.words)"
                    : "  its list is not queued to its end; continue with: prefetch-coord \(command)\(location.words)")
        }
        if status.state == .running, load.workers == 0, !status.isWaitingForList, status.retryOf == nil,
            case .copied(let path) = ListPlace.standing(of: status)
        {
            lines.append(
                "  its list is not what it was; with the lines that it had it continues with: prefetch-coord run "
                    + "\(Shell.quoted(path))\(location.words)")
        }
        for (host, message) in try await queue.reports.refusals(of: status.id).prefix(20) {
            lines.append(
                "  refused \(TerminalText.escaped(host)): \(TerminalText.escaped(message)); workers open it with --allow-net"
            )
        }
        for (worker, counts) in counts.sorted(by: { $0.key < $1.key }) {
            lines.append(
                "  \(TerminalText.escaped(worker)) finished \(Wording.count(counts.finished)) skipped \(Wording.count(counts.skipped))"
            )
        }
        if status.state == .running {
            lines.append("  what its URLs wait for: prefetch-coord why --oldest \(id)\(location.words)")
        }
        return lines
    }
}
