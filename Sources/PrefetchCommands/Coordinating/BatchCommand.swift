internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord batch`: batches as things in Redis.
struct BatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "batch",
        abstract: "Remove batches from Redis.",
        discussion: """
            Example:
              prefetch-coord batch rm urls-7f3a --cache ./cache
            """,
        subcommands: [BatchRemoveCommand.self])
}

/// `prefetch-coord batch rm`: takes batches that are over out of Redis.
struct BatchRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Remove batches that are over from Redis. Their images stay.",
        usage: "prefetch-coord batch rm <batch> ... [<options>]",
        discussion: """
            Examples:
              prefetch-coord batch rm urls-7f3a --cache ./cache
              prefetch-coord batch rm urls-7f3a urls-7f3a.2 --yes

            They go by themselves 7 days after their end (--keep). A running batch is
            to be cancelled first, and a retry goes before the batch it retries.
            """)

    @Argument(help: "Batches, or beginnings of their names.")
    var batches: [String]

    @OptionGroup var confirmation: Confirmation
    @OptionGroup(title: "Where") var location: RedisLocation

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
                "remove \(names) from Redis, with what was skipped and why, and leave the images", "batch rm")
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
            .configuration, "\(id) is running and was not removed", hint: "end it first: prefetch-coord cancel \(id)")
    }

    private static func retried(_ id: String, by retry: String) -> PrefetchError {
        PrefetchError(
            .configuration, "\(retry) retries what \(id) skipped, so \(id) was not removed",
            hint: "remove both: prefetch-coord batch rm \(id) \(retry)")
    }
}
