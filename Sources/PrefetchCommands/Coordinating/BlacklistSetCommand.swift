internal import ArgumentParser
internal import Prefetch
internal import Redis

/// `prefetch-coord blacklist set`: how long the list may become.
struct BlacklistSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Limit the size of the blacklist.",
        usage: "prefetch-coord blacklist set [<options>]",
        discussion: """
            Examples:
              prefetch-coord blacklist set --blacklist-max 100000 --cache ./cache
              prefetch-coord blacklist set --default

            The limit holds at once for all workers of the queue: the oldest entries are
            removed. Entries added by hand do not count and stay.
            """)

    @Option(
        name: .customLong("blacklist-max"),
        help: .count("Entries made by batches; 0 = no limit. (default: 500000)"))
    var most: Int?

    @Flag(name: .customLong("default"), help: "Reset to the default.")
    var isDefault = false

    @OptionGroup(title: "Redis") var location: RedisLocation

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
