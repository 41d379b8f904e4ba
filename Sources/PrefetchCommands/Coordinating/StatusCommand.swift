internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord status`: one look at a batch, or at all.
struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show one batch, or all of them and the workers.",
        usage: "prefetch-coord status [<batch>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord status --cache ./cache
              prefetch-coord status urls-7f3a --json
            """)

    @Argument(help: "A batch, or the beginning of its name; all by default.")
    var batch: String?

    @Flag(help: "One object of JSON.")
    var json = false

    @Option(help: "Colours: auto, always, never.")
    var color = ColourChoice.auto

    @OptionGroup(title: "Where") var location: RedisLocation

    func run() async throws {
        try await Session.with(location) { session in
            let queue = session.queue
            let ids = batch == nil ? try await queue.batches() : [try await queue.resolve(batch)]
            let statuses = try await queue.statuses(of: ids)
            let workers = try await queue.workerFacts()
            if json {
                Console.print(Self.object(statuses, workers).text)
            } else if batch != nil, let status = statuses.first {
                try await printOne(status, queue)
            } else {
                if statuses.isEmpty { Console.print("no batches") }
                for status in statuses { Console.print(BatchText.line(status, isColoured: isColoured)) }
                Self.printWorkers(workers)
            }
        }
    }

    private var isColoured: Bool { color.isOn(STDOUT_FILENO) }

    private func printOne(_ status: BatchStatus, _ queue: PrefetchQueue) async throws {
        Console.print(BatchText.line(status, isColoured: isColoured))
        for line in BatchText.outcomes(status.counts) { Console.print(line) }
        Console.print(
            "  list \(TerminalText.escaped(status.listPath)), \(Wording.count(status.pushed)) of its \(Wording.count(status.total)) URLs queued"
        )
        Console.print(
            "  \(status.ended > 0 ? "took" : "running for") \(Wording.seconds(status.elapsed)), \(Wording.bytes(status.counts.bytes)) downloaded"
        )
        let chain = try await BatchChain.read(status.id, queue: queue)
        if let line = BatchText.merged(chain, seenFrom: status.id) { Console.print(line) }
        if status.waitsForItsList {
            let command =
                status.retryOf == nil ? "submit --resume \(Shell.quoted(status.listPath))" : "retry \(status.id)"
            Console.print("  waiting for its list; go on with: prefetch-coord \(command)")
        }
        for (host, message) in try await queue.refusals(of: status.id).prefix(20) {
            Console.print(
                "  refused \(TerminalText.escaped(host)): \(TerminalText.escaped(message)); workers open it with --allow-net"
            )
        }
        for (worker, counts) in try await queue.workerCounts(of: status.id).sorted(by: { $0.key < $1.key }) {
            Console.print(
                "  \(TerminalText.escaped(worker)) finished \(Wording.count(counts.finished)) skipped \(Wording.count(counts.skipped))"
            )
        }
    }

    private static func printWorkers(_ workers: [[String: String]]) {
        if workers.isEmpty { Console.print("no workers") }
        for facts in workers {
            var line = "worker \(TerminalText.escaped(facts["id"] ?? ""))  in flight \(facts["in_flight"] ?? "0")"
            line += "  finished \(facts["finished"] ?? "0") skipped \(facts["skipped"] ?? "0")"
            if let trouble = facts["trouble"], !trouble.isEmpty { line += "  paused: \(TerminalText.escaped(trouble))" }
            Console.print(line)
        }
    }

    private static func object(_ statuses: [BatchStatus], _ workers: [[String: String]]) -> JSONText {
        func number(_ facts: [String: String], _ name: String) -> JSONText { .int(Int(facts[name] ?? "") ?? 0) }
        return .object([
            ("v", .int(1)), ("batches", .array(statuses.map(BatchJSON.object))),
            (
                "workers",
                .array(
                    workers.map { facts in
                        .object([
                            ("id", .string(facts["id"] ?? "")), ("host", .string(facts["host"] ?? "")),
                            ("pid", number(facts, "pid")), ("in_flight", number(facts, "in_flight")),
                            ("finished", number(facts, "finished")), ("skipped", number(facts, "skipped")),
                            ("trouble", facts["trouble"].flatMap { $0.isEmpty ? nil : .string($0) } ?? .null),
                        ])
                    })
            ),
        ])
    }
}
