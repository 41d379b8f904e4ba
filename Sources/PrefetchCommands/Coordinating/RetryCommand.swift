internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// `prefetch-coord retry`: what a batch skipped, once more.
struct RetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Fetch the skipped URLs of a batch again.",
        usage: "prefetch-coord retry [<batch>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord retry --cache ./cache
              prefetch-coord retry urls-7f3a --redis redis://host:6379/0 --wait

            Makes a batch of the skipped lines with the options of the first one; options
            given here replace them. Line numbers stay the same, the blacklist is ignored,
            and status, failures and export then show the newest result of each line. With
            the private Redis of a cache it starts workers as run does; with --redis it
            queues the batch as submit does.
            """)

    @Argument(help: "Batch, or the beginning of its name. (default: the newest)", completion: .batch)
    var batch: String?

    @Flag(help: "With --redis: wait for the end of the batch; summary and exit code as run.")
    var wait = false

    @Option(
        name: [.customShort("n"), .long], help: .count("Worker processes, 1 to 256. (default: cores, up to 4)")
    )
    var workers: Int?

    @Option(
        help: .share("Exit with 0 even if this many URLs failed; see --max-failures."))
    var allowFailures: PrefetchSettings.Share?

    @OptionGroup var output: SettingOptions<OutputArguments>
    @OptionGroup(title: "Shards") var shards: SettingOptions<ShardArguments>

    @Flag(help: "Print the result as one JSON object.")
    var json = false

    @OptionGroup var verbosity: VerbosityArguments

    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>
    @OptionGroup(title: SettingTitles.batch) var changes: SettingOptions<RetryBatch>
    @OptionGroup(title: SettingTitles.worker) var fetch: SettingOptions<RunFetch>
    @OptionGroup(title: "Output") var progress: ProgressArguments
    @OptionGroup(title: "Output") var secrets: SecretOptions

    func targets() throws -> [BatchOutput.Target] { try output.record.targets(shards.record) }

    func validate() throws {
        _ = try targets()
        try progress.check(verbosity.level)
        if let workers, !(1...256).contains(workers) { throw ValidationError("--workers is a number from 1 to 256") }
    }

    func run() async throws {
        if progress.mode(verbosity.level) == .json { Console.noteAsJSON() }
        let place = try location.record.place()
        switch place {
        case .server:
            try refuseOptionsOfWorkers()
            try await Session.with(location.record) { session in try await queue(session) }
        case .cache(let folder):
            try Session.requireRun(folder, location.record)
            let outputs = try targets()
            for target in outputs { try target.check() }
            var changes = try self.changes.settings()
            var fetch = try fetch.record.complete()
            fetch.headers = changes.takeSecretHeaders()
            let cache = try RunCache(folder, location.stateFolder, fetch.prepareCache())
            let settings = RunSettings(
                cache: folder, state: location.state, queue: location.queue,
                workers: workers ?? RunCommand.defaultWorkers,
                allowFailures: allowFailures, json: json,
                progress: progress.mode(verbosity.level), isColoured: progress.isColoured,
                verbosity: verbosity.level, fetch: fetch,
                outputs: outputs, overwrites: output.overwrite, showsSecrets: secrets.showSecrets)
            try await BatchRun(
                settings: settings, cache: cache,
                source: .skipped(of: batch, taking: self.changes.given, from: changes)
            ).run()
        }
    }

    /// With `--redis` the workers are elsewhere and have their own options.
    private func refuseOptionsOfWorkers() throws {
        var given: [String] = []
        if workers != nil { given.append("--workers") }
        if output.manifest != nil { given.append("--manifest") }
        if output.out != nil { given.append("--out") }
        if output.overwrite { given.append("--overwrite") }
        given += FetchSettings.settings.filter { fetch.given.contains($0.name) }.map(\.about.flag)
        if !wait && allowFailures != nil { given.append("--allow-failures without --wait") }
        guard given.isEmpty else {
            throw ValidationError(
                "with --redis the workers are elsewhere; \(given.joined(separator: ", ")) would say nothing to them")
        }
    }

    /// Puts the batch into the queue, as `submit` does.
    private func queue(_ session: Session) async throws {
        let stop = StopRequest()
        stop.listen()
        let retry = BatchRetry(
            queue: session.queue, feeding: session.waitingQueue, name: batch,
            words: verbosity.level > .quiet ? location.words : nil, given: changes.given,
            changes: try changes.settings())
        let opened: OpenBatch
        switch try await retry.open(joinsRunning: false) {
        case .nothing(let newest):
            Console.note(BatchText.nothingSkipped(newest))
            if json { Console.print(BatchAnswer(newest).line) }
            return
        case .batch(let batch): opened = batch
        }
        if !json && !(wait && verbosity.level <= .quiet) { Console.print(opened.id) }
        let hint = try await session.queue.workers.names().isEmpty ? "; no worker is running yet" : ""
        let end = try await session.untilStopped(stop) {
            try await opened.feed { wait in
                for line in FeedingText.lines(wait, hint) { Console.note(line) }
            }
        }
        guard let end else {
            throw PrefetchError(
                .stopped, "stopped before all of it was queued; what is queued runs on",
                hint: "the same command again continues")
        }
        if case .closed(let state) = end, state != "done" {
            throw PrefetchError(.notFound, "the batch \(opened.id) was \(state) while it was fed", hint: "retry again")
        }
        if wait {
            return try await QueuedBatch(opened.id, session, location.record).follow(
                stop, progress, verbosity.level, allowed: allowFailures, isJSON: json)
        }
        if json, let status = try await session.queue.batches.status(of: opened.id) {
            Console.print(BatchAnswer(status).line)
        }
        Console.note("queued \(Wording.count(opened.total)) URLs as \(opened.id)\(hint)")
    }
}
