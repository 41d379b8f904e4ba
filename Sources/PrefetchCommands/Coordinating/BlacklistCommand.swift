internal import ArgumentParser
internal import Prefetch
internal import Redis

/// `prefetch-coord blacklist`: URLs that failed permanently, which no batch requests without `--retry-failed`.
struct BlacklistCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "blacklist",
        abstract: "List and change the URLs that are not requested again.",
        discussion: """
            Examples:
              prefetch-coord blacklist --cache ./cache
              prefetch-coord blacklist rm https://example.org/a.jpg
              prefetch-coord blacklist add - < opted-out.txt

            URLs on the blacklist end as blacklisted, without a request, unless a batch has
            --retry-failed. Which failures are added: --blacklist of run and submit. Batches
            list at most 500,000 URLs of a queue; then the oldest are removed.
            """,
        subcommands: [BlacklistListCommand.self, BlacklistAddCommand.self, BlacklistRemoveCommand.self],
        defaultSubcommand: BlacklistListCommand.self)
}

/// `prefetch-coord blacklist list`: what is on it, and why.
struct BlacklistListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the blacklisted URLs and their reasons.",
        usage: "prefetch-coord blacklist [list] [<options>]",
        discussion: """
            Examples:
              prefetch-coord blacklist --cache ./cache
              prefetch-coord blacklist list --json | jq -r .url > failed.txt
            """)

    @Flag(help: "Print one JSON object per line.")
    var json = false

    @OptionGroup(title: "Output") var secrets: SecretOptions
    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func run() async throws {
        try await Session.with(location.record) { session in
            var count = 0
            try await session.queue.failedURLs.forEach { group throws(PrefetchError) in
                count += group.count
                let lines = group.map { (json ? $0.json.text : FailedURLText.line($0)) + "\n" }
                Console.print(Array(lines.joined().utf8))
                return Console.takesMore
            }
            if count == 0 { Console.note("the blacklist is empty") }
        }
    }
}
