internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord rm`: removes finished batches from Redis.
struct RemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Remove finished batches from Redis; their images stay.",
        usage: "prefetch-coord rm <batch> ... [<options>]",
        discussion: """
            Examples:
              prefetch-coord rm urls-7f3a --cache ./cache
              prefetch-coord rm urls-7f3a urls-7f3a.2 --yes

            Redis drops finished batches after 7 days anyway (--keep). Cancel a running
            batch first, and remove a retry together with the batch it retries.
            """)

    @Argument(help: .value("batch", "Batches, or the beginnings of their names."))
    var batches: [String]

    @OptionGroup var confirmation: Confirmation
    @OptionGroup(title: "Redis") var location: RedisLocation

    func run() async throws {
        try await Session.with(location) { session in
            let queue = session.queue
            var ids: Set<String> = []
            for name in batches { ids.insert(try await queue.catalog.resolve(name)) }
            // Newest first: a retry is younger than what it retries.
            let found = try await queue.batches.statuses(of: ids.sorted()).sorted {
                ($0.created, $0.id) > ($1.created, $1.id)
            }
            for status in found {
                if status.state == .running { throw Self.running(status.id) }
                if let retry = status.retriedBy, !ids.contains(retry) { throw Self.retried(status.id, by: retry) }
            }
            let names = found.map { TerminalText.escaped($0.id) }.joined(separator: ", ")
            try confirmation.ask(
                "remove \(names) from Redis, with what was skipped and why, and leave the images", "rm")
            for status in found {
                switch try await queue.batches.remove(batch: status.id) {
                case .removed, .gone: Console.print("removed \(TerminalText.escaped(status.id))")
                case .running: throw Self.running(status.id)
                case .retriedBy(let retry): throw Self.retried(status.id, by: retry)
                }
            }
        }
    }

    private static func running(_ id: String) -> PrefetchError {
        PrefetchError(
            .configuration, "\(id) is running and was not removed", hint: "cancel it first: prefetch-coord cancel \(id)"
        )
    }

    private static func retried(_ id: String, by retry: String) -> PrefetchError {
        PrefetchError(
            .configuration, "\(retry) retries what \(id) skipped, so \(id) was not removed",
            hint: "remove both: prefetch-coord rm \(id) \(retry)")
    }
}
