public import ArgumentParser
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-worker`: one worker process.
public struct WorkerCommand: AsyncParsableCommand, FetchOptionGroups {
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

    @Option(
        name: .customLong("validate"),
        help: .value(
            "level", "Minimum check of an image, whatever its batch requests: none, header, structure or decode."))
    var minimumLevel = "none"

    @Option(help: .size("Largest image, whatever its batch asks, up to 4GiB."))
    var maxSize = ByteSize(bytes: 4 << 30)

    @Option(
        help: .count(
            "Largest image in pixels, whatever its batch asks: 800M. WebP, AVIF and progressive JPEG: 100M at most."))
    var maxPixels = PixelCount(count: FetchSettings.usualPixels)

    @Option(
        name: .customLong("limit-rate-of-queue"),
        help: .size("Bytes of images per second over all workers of the queue: 10MB. (default: no limit)"))
    var limitRateOfQueue: ByteSize?

    @Option(
        help: .value("format", "Log on standard error: text, json or auto. (default: PREFETCH_LOG_FORMAT, or text)"))
    var logFormat: LogFormat?

    @OptionGroup(title: "Redis") var location: RedisLocation
    @OptionGroup(title: "Worker") var transfers: TransferOptions
    @OptionGroup(title: "Worker") var process: ProcessOptions
    @OptionGroup(title: "Network") var network: NetworkOptions
    @OptionGroup(title: "Credentials") var credentials: CredentialOptions
    @OptionGroup(title: "Cache limits") var cacheLimits: CacheLimitOptions
    @OptionGroup(title: "Cache files") var storage: StorageOptions
    @OptionGroup(title: "Cache files") var readOnly: ReadOnlyCacheOptions
    @OptionGroup(title: "Output") var secrets: SecretOptions

    /// Used by the parser.
    public init() {}

    /// Checks combinations of options.
    public func validate() throws {
        guard ValidationLevel(name: minimumLevel) != nil else {
            throw ValidationError("--validate is none, header, structure or decode, not '\(minimumLevel)'")
        }
        guard maxSize.bytes <= 4 << 30 else { throw ValidationError("--max-size is at most 4GiB") }
        try maxPixels.check("--max-pixels")
        if let limitRateOfQueue, limitRateOfQueue.bytes < 1024 {
            throw ValidationError("--limit-rate-of-queue is at least 1K")
        }
    }

    /// How it fetches.
    func settings() throws(PrefetchError) -> FetchSettings {
        var settings = try fetch.settings()
        process.apply(to: &settings)
        settings.cacheMode = storage.mode?.bits
        settings.maxPixels = maxPixels.count
        return settings
    }

    /// Works until told to leave.
    public func run() async throws {
        let (location, place) = (location, try location.placeOfWorker())
        var worker = WorkerProcess(cache: location.cacheFolder ?? "./cache", queue: location.queue) {
            () async throws(PrefetchError) in
            try await Session.open(location, at: place, waits: true)
        }
        worker.redis =
            switch place {
            case .server(let configuration): configuration.redactedURL
            case .cache(let folder): "of \(folder)"
            }
        worker.fetch = try settings()
        worker.isBurst = burst
        worker.isQuiet = quiet
        worker.minimumLevel = ValidationLevel(name: minimumLevel) ?? .none
        worker.maxImageBytes = maxSize.bytes
        worker.limitRateOfQueue = limitRateOfQueue?.bytes
        worker.logFormat = logFormat
        try await worker.run()
    }
}
