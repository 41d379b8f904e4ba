internal import ArgumentParser
internal import Prefetch
internal import Redis

/// `prefetch-coord blacklist set`: how long the list may become.
struct BlacklistSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Limit how many URLs the list of failed URLs has.",
        usage: "prefetch-coord blacklist set [<options>]",
        discussion: """
            Examples:
              prefetch-coord blacklist set --blacklist-max 100000 --cache ./cache
              prefetch-coord blacklist set --default

            All workers of the queue go by it at once. Where batches have listed more, the
            oldest go; what was added by hand does not count, and stays.
            """)

    @Option(
        name: .customLong("blacklist-max"),
        help: "URLs that batches may have listed; 0 = no limit. (default: 500000)")
    var most: Int?

    @Flag(name: .customLong("default"), help: "As if nothing had been said.")
    var isDefault = false

    @OptionGroup(title: "Where") var location: RedisLocation

    func validate() throws {
        if (most != nil) == isDefault { throw ValidationError("give --blacklist-max N, or --default") }
        if let most, most < 0 { throw ValidationError("--blacklist-max is a number from 0 on, not \(most)") }
    }

    func run() async throws {
        try await Session.with(location) { session in
            try await session.queue.failedURLs.setLimit(most)
            Console.print(FailedURLText.limit(try await session.queue.failedURLs.limit()))
        }
    }
}
