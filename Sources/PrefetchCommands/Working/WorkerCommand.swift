public import ArgumentParser
internal import CLinux
internal import FoundationEssentials
internal import Glibc
internal import Prefetch
internal import Redis
internal import Threading
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

    @Flag(
        help: ArgumentHelp("No line with the counts at the end: what the workers of a run get.", visibility: .private))
    var noResult = false

    @Option(
        name: .customLong("validate"),
        help: .value("level", "Least check of an image, whatever its batch asks: none, header, structure or decode."))
    var minimumLevel = "none"

    @Option(help: .size("Largest image, whatever its batch asks, up to 4GiB."))
    var maxSize = ByteSize(bytes: 4 << 30)

    @Option(
        name: .customLong("limit-rate-of-queue"),
        help: .size("Bytes of images per second over all workers of the queue: 10MB. (default: no limit)"))
    var limitRateOfQueue: ByteSize?

    @Option(
        help: .folder(
            "Record every event of this worker in this folder, for fsck --history. (default: PREFETCH_HISTORY)"),
        completion: .directory)
    var history: String?

    @Option(
        help: .value("format", "Log on standard error: text, json or auto. (default: PREFETCH_LOG_FORMAT, or text)"))
    var logFormat: LogFormat?

    @OptionGroup(title: "Redis") var location: RedisLocation
    @OptionGroup var fetch: FetchOptions
    @OptionGroup(title: "Output") var secrets: SecretOptions

    /// Used by the parser.
    public init() {}

    /// Checks combinations of options.
    public func validate() throws {
        guard ValidationLevel(name: minimumLevel) != nil else {
            throw ValidationError("--validate is none, header, structure or decode, not '\(minimumLevel)'")
        }
        guard maxSize.bytes <= 4 << 30 else { throw ValidationError("--max-size is at most 4GiB") }
        if let limitRateOfQueue, limitRateOfQueue.bytes < 1024 {
            throw ValidationError("--limit-rate-of-queue is at least 1K")
        }
    }

    /// Works until told to leave.
    public func run() async throws {
        let folder = location.cacheFolder ?? "./cache"
        let fetch = try fetch.settings()
        // Before the first line: log collectors read only JSON.
        if try LogFormat.chosen(logFormat) == .json { Console.noteAsJSON() }
        // Before anything is opened.
        let budget = try DescriptorBudget.raised()
        if !quiet, let note = budget.note(wanted: fetch.maxConcurrentDownloads) { Console.note(note) }
        let storage = fetch.prepareCache()
        let disk = try CacheOpening.forWriting(folder, storage)
        clinux_keep_freed_memory()
        if !quiet { for warning in disk.warnings { Console.note("warning: \(warning)") } }
        let stop = StopRequest()
        // Redis may be restarting right now: the worker waits for it, as it does later on.
        try await Session.with(location, at: location.placeOfWorker(), waits: true) { session in
            let manager = try manager(folder, fetch, storage, budget)
            let service = ServiceManager(environment: ProcessInfo.processInfo.environment)
            let limiter = Locked(LogLimiter())
            let worker = PrefetchWorker(
                configuration: try configuration(service, limiter, fetch, budget), redis: session.redis,
                queue: location.queue,
                manager: manager
            )
            TerminationSignals.install { signal, count in
                stop.request(signal: signal, count: count)
                if count == 1 {
                    service?.tell(.stopping, .status("finishing transfers in flight"))
                    worker.drain()
                } else {
                    worker.stop()
                }
            }
            // The transfer loop and the worker must respond, or they hang. Redis is not checked: its absence is no reason for a kill.
            async let _: Void? = service?.watch {
                _ = await manager.downloader.activity
                _ = await worker.counts
            }
            let log = try fetch.transferLog.map { path in
                let (log, events) = (try TransferLog(path: path), manager.downloader.events())
                return Task { await log.write(events) }
            }
            let counts = try await worker.run()
            for (kind, leftOut) in limiter.withLock({ $0.rest() }) {
                Console.note("\(Wording.count(leftOut)) more lines about \(kind) were left out")
            }
            // Before the process ends: TLS must not be taken down under a thread that still uses it.
            await manager.downloader.invalidateSessionAndCancel()
            await log?.value
            if !noResult, !quiet || counts.finished > 0 { Console.print(Self.lastLine(counts)) }
            if let signal = stop.forced { throw ExitCode(TerminationSignals.exitCode(signal)) }
        }
    }

    private func configuration(
        _ service: ServiceManager?, _ limiter: Locked<LogLimiter>, _ fetch: FetchSettings, _ budget: DescriptorBudget
    ) throws(PrefetchError) -> PrefetchWorker.Configuration {
        var configuration = PrefetchWorker.Configuration()
        configuration.lease = Int(fetch.lease * 1000)
        configuration.maxConcurrentDownloads = min(fetch.maxConcurrentDownloads, budget.transfers)
        configuration.concurrencyLimit = budget.transfers
        configuration.maxImageBytes = maxSize.bytes
        configuration.burst = burst
        configuration.limitRateOfQueue = limitRateOfQueue?.bytes
        configuration.drainTimeout = fetch.drainTimeout
        configuration.cacheLimits = fetch.cacheLimits
        configuration.minimumLevel = ValidationLevel(name: minimumLevel) ?? .none
        let folder = history ?? ProcessInfo.processInfo.environment["PREFETCH_HISTORY"] ?? ""
        if !folder.isEmpty { configuration.history = try HistoryLog(folder: folder, queue: location.queue) }
        let isQuiet = quiet
        let isJSON = try LogFormat.chosen(logFormat) == .json
        configuration.onEvent = { event in
            Self.tell(service, event)
            guard let line = Self.text(event, isQuiet: isQuiet) else { return }
            let kind = LogFormat.name(event)
            guard let leftOut = limiter.withLock({ $0.admit(kind, second: LogLimiter.now) }) else { return }
            if isJSON {
                Console.log(LogFormat.object(event, line, leftOut: leftOut))
            } else {
                let more = leftOut > 0 ? " (\(Wording.count(leftOut)) more like it were left out)" : ""
                Console.note("\(ProgressLines.clock) \(line)\(more)")
            }
        }
        return configuration
    }

    private func manager(
        _ folder: String, _ fetch: FetchSettings, _ storage: DiskCache.Configuration, _ budget: DescriptorBudget
    ) throws(PrefetchError) -> ImageManager {
        var downloads = try fetch.downloads()
        downloads.maxBodyBytes = min(downloads.maxBodyBytes, maxSize.bytes)
        downloads.maxConcurrentDownloads = min(downloads.maxConcurrentDownloads, budget.transfers)
        downloads.maxParkedDownloads = min(
            downloads.maxParkedDownloads, budget.silent(beside: downloads.maxConcurrentDownloads))
        do throws(WebImageError) {
            // No image is requested twice in this process: a memory cache would only cost.
            var cache = ImageCache.Configuration.diskOnly
            cache.disk = storage
            let coder = ImageCoder(memory: DecodeMemory(limit: fetch.maxDecodeMemory))
            return try ImageManager(
                cache: ImageCache(directory: folder, configuration: cache), downloads: downloads, coder: coder)
        } catch {
            if error.code == .localFault {
                throw PrefetchError(
                    .cacheUnavailable, error.message, hint: "repair the disk, or choose another folder: --cache DIR")
            }
            throw PrefetchError(.configuration, error.message, hint: "see prefetch-worker --help")
        }
    }

    private static func text(_ event: PrefetchWorker.Event, isQuiet: Bool) -> String? {
        switch event {
        case .joined(let name): isQuiet ? nil : "worker \(name) is ready"
        case .redisAway(let reason): "waiting for Redis: \(TerminalText.escaped(reason))"
        case .redisBack: "Redis is back"
        case .warning(let text): TerminalText.escaped(text)
        case .lost(let name): "worker \(name) was declared lost by the other workers; continuing under a new name"
        case .paused(let reason):
            "paused: \(TerminalText.escaped(reason)); no URL fails because of it; checking again every few seconds"
        case .resumed: "working again"
        case .held(let isHeld): isHeld ? "held: disk: \(WorkerHold.text)" : "the disk answers again"
        // By command, so the user knows already.
        case .halted(let isHalted):
            isQuiet ? nil : isHalted ? "paused by prefetch-coord; transfers in flight finish" : "resumed"
        case .concurrency(let count): isQuiet ? nil : "at most \(count) transfers at once from now on"
        // A run reports refused hosts itself, once for all its workers.
        case .refused(_, let message):
            isQuiet ? nil : "refused: \(TerminalText.escaped(message)); open it with --allow-net"
        }
    }

    /// A worker that waits for Redis is a started service: the wait is in its status, and its end is not a new start.
    private static func tell(_ service: ServiceManager?, _ event: PrefetchWorker.Event) {
        guard let service, let line = text(event, isQuiet: false) else { return }
        switch event {
        case .joined, .redisAway: service.tell(.ready, .status(line))
        case .redisBack, .paused, .resumed, .held, .halted, .lost: service.tell(.status(line))
        case .warning, .concurrency, .refused: break
        }
    }

    /// `prefetch-worker host:pid finished 4,812 skipped 188 (downloaded 4,700, …)`
    static func lastLine(_ counts: PrefetchCounts) -> String {
        let parts = PrefetchOutcome.allCases.filter { counts[$0] > 0 }.map { "\($0.name) \(Wording.count(counts[$0]))" }
        return "prefetch-worker \(ThisHost.name):\(getpid()) finished \(Wording.count(counts.finished)) skipped "
            + Wording.count(counts.skipped) + (parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))")
    }
}
