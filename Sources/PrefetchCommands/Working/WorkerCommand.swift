public import ArgumentParser
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-worker`: one worker process.
public struct WorkerCommand: AsyncParsableCommand {
    /// Its name and help.
    public static let configuration = CommandConfiguration(
        commandName: "prefetch-worker",
        abstract: "Fetch the images of a queue into the shared cache.",
        discussion: """
            Examples:
              prefetch-worker --redis redis://host:6379/0 --cache /srv/images
              prefetch-worker --redis unix:///run/redis.sock --cache ./cache --burst
              prefetch-worker health --redis redis://host:6379/0

            The first SIGTERM or Ctrl-C finishes transfers in flight and gives the other
            jobs back; the second stops at once. Neither loses a URL.
            """,
        version: "prefetch \(PrefetchVersion)",
        subcommands: [HealthCommand.self])

    @Flag(help: "Exit when no batch is running any more.")
    var burst = false

    @Flag(name: [.customShort("q"), .long], help: "Print errors and the final counts only.")
    var quiet = false

    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>
    @OptionGroup(title: SettingTitles.worker) var fetch: SettingOptions<WorkerFetch>
    @OptionGroup(title: "Output") var secrets: SecretOptions

    /// Used by the parser.
    public init() {}

    /// Works until told to leave.
    public func run() async throws {
        let (location, place) = (location, try location.record.placeOfWorker())
        var worker = WorkerProcess(cache: location.cacheFolder ?? "./cache", queue: location.queue) {
            () async throws(PrefetchError) in
            try await Session.open(location.record, at: place, waits: true)
        }
        worker.redis =
            switch place {
            case .server(let configuration): configuration.redactedURL
            case .cache(let folder): "of \(folder)"
            }
        worker.fetch = try fetch.record.complete()
        worker.isBurst = burst
        worker.isQuiet = quiet
        try await worker.run()
    }
}
