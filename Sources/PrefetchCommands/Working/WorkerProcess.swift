internal import ArgumentParser
internal import CLinux
internal import FoundationEssentials
internal import Glibc
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// One worker process, from its settings to its last line.
struct WorkerProcess: Sendable {
    let cache: String, queue: String
    /// The Redis it was given, for its first line; empty: not printed.
    var redis = ""
    /// Connects to Redis; need not be there yet.
    let open: @Sendable () async throws(PrefetchError) -> Session
    var fetch = FetchSettings()
    /// Exit when no batch is running any more.
    var isBurst = false
    /// Errors and the final counts only.
    var isQuiet = false
    /// Whether the final counts are printed.
    var tellsResult = true
    /// Where it notes what it decodes.
    var notes: DecodeNotes.Writer?

    init(cache: String, queue: String, open: @escaping @Sendable () async throws(PrefetchError) -> Session) {
        (self.cache, self.queue, self.open) = (cache, queue, open)
    }

    /// Works until told to leave.
    func run() async throws {
        // Before the first line: log collectors read only JSON.
        if fetch.logFormat.isJSON { Console.noteAsJSON { LogFormat.note($0).json } }
        if !isQuiet { Console.note("\(UTCTime.clock()) \(firstLine)") }
        // Before anything is opened.
        let budget = try DescriptorBudget.raised()
        if !isQuiet, let note = budget.note(wanted: fetch.maxConcurrentDownloads) { Console.note(note) }
        let disk = try CacheOpening.forWriting(cache, fetch.prepareCache())
        clinux_keep_freed_memory()
        if !isQuiet { for warning in disk.warnings { Console.note("warning: \(warning)") } }
        let stop = StopRequest()
        // Redis may be restarting right now: the worker waits for it, as it does later on.
        try await Session.with(open) { session in
            if !isQuiet, session.hasConnected { await Self.tellUnknownQueue(session.queue) }
            let manager = try manager(disk, budget)
            let service = ServiceManager(environment: ProcessInfo.processInfo.environment)
            let limiter = Locked(LogLimiter())
            let worker = PrefetchWorker(
                configuration: configuration(service, limiter, budget), redis: session.redis,
                queue: queue, manager: manager)
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
            manager.coder.sandbox?.rest()
            await log?.value
            if tellsResult, !isQuiet || counts.finished > 0 { Console.print(Self.lastLine(counts)) }
            if let signal = stop.forced { throw ExitCode(TerminationSignals.exitCode(signal)) }
        }
    }

    /// What it is about to use, before it is tried.
    private var firstLine: String {
        let place = redis.isEmpty ? "" : "Redis \(TerminalText.escaped(redis)), "
        return "prefetch-worker \(PrefetchVersion): \(place)queue '\(TerminalText.escaped(queue))', cache "
            + TerminalText.escaped(PathText.shown(Shell.path(cache)))
    }

    /// A mistyped name would be waited at for ever.
    private static func tellUnknownQueue(_ queue: PrefetchQueue) async {
        guard let text = try? await queue.catalog.unknownQueue() else { return }
        Console.note("\(UTCTime.clock()) note: \(TerminalText.escaped(text))")
    }

    private func configuration(
        _ service: ServiceManager?, _ limiter: Locked<LogLimiter>, _ budget: DescriptorBudget
    ) -> PrefetchWorker.Configuration {
        var configuration = PrefetchWorker.Configuration()
        configuration.lease = Int(fetch.lease * 1000)
        configuration.maxConcurrentDownloads =
            fetch.maxConcurrentDownloads.count.map { .fixed(min($0, budget.transfers)) } ?? .auto
        configuration.concurrencyLimit = budget.transfers
        configuration.maxImageBytes = fetch.maxImageBytes
        configuration.burst = isBurst
        configuration.limitRateOfQueue = fetch.limitRateOfQueue
        configuration.drainTimeout = fetch.drainTimeout
        configuration.cacheLimits = fetch.cacheLimits
        configuration.minimumLevel = fetch.minimumLevel
        configuration.notes = notes
        let isQuiet = isQuiet
        let isJSON = fetch.logFormat.isJSON
        configuration.onEvent = { event in
            Self.tell(service, event)
            guard let line = Self.text(event, isQuiet: isQuiet) else { return }
            let kind = LogFormat.name(event)
            guard let leftOut = limiter.withLock({ $0.admit(kind, second: LogLimiter.now) }) else { return }
            if isJSON {
                Console.log(LogFormat.object(event, line, leftOut: leftOut).json)
            } else {
                let more = leftOut > 0 ? " (\(Wording.count(leftOut)) more like it were left out)" : ""
                Console.note("\(UTCTime.clock()) \(line)\(more)")
            }
        }
        return configuration
    }

    private func manager(
        _ disk: DiskCache, _ budget: DescriptorBudget
    ) throws(PrefetchError) -> ImageManager {
        var downloads = try fetch.downloads()
        downloads.maxBodyBytes = min(downloads.maxBodyBytes, fetch.maxImageBytes)
        downloads.maxConcurrentDownloads = min(downloads.maxConcurrentDownloads, budget.transfers)
        let most = min(budget.transfers, fetch.maxConcurrentDownloads.count ?? ConcurrencyController.most)
        downloads.maxStalledDownloads = min(downloads.maxStalledDownloads, budget.stalled(beside: most))
        downloads.maxIdleConnections = budget.idle(beside: most)
        let decoders = try fetch.decoders()
        do throws(WebImageError) {
            // No image is requested twice in this process: a memory cache would only cost.
            var tiers = ImageCache.Configuration.diskOnly
            tiers.disk = disk.configuration
            let coder = ImageCoder(
                limits: fetch.imageLimits, memory: DecodeMemory(limit: fetch.maxDecodeMemory),
                sandbox: decoders)
            return try ImageManager(
                cache: ImageCache(disk, configuration: tiers), downloads: downloads, coder: coder)
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
            "paused: \(TerminalText.escaped(reason)); no URL fails because of it; checked again after 1 to 30 s"
        case .resumed: "working again"
        case .held(let isHeld): isHeld ? "held: disk: \(WorkerHold.text)" : "the disk answers again"
        // By command, so the user knows already.
        case .pausedByCommand(let isPaused):
            isQuiet ? nil : isPaused ? "paused by prefetch-coord; transfers in flight finish" : "resumed"
        case .concurrency(let setting):
            isQuiet
                ? nil
                : setting.count.map { "at most \($0) transfers at once from now on" }
                    ?? "finds its number of transfers from now on"
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
        case .redisBack, .paused, .resumed, .held, .pausedByCommand, .lost: service.tell(.status(line))
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
