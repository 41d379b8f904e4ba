internal import ArgumentParser
internal import FoundationEssentials
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// `prefetch-coord submit`: puts a list into a queue for workers elsewhere.
struct SubmitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "submit",
        abstract: "Queue a list of image URLs for workers.",
        usage: "prefetch-coord submit <file> ... [<options>]",
        discussion: """
            Examples:
              prefetch-coord submit urls.txt --redis redis://host:6379/0
              crawler | prefetch-coord submit - --redis unix:///run/redis.sock --wait

            Prints the id of the batch and returns when the whole list is in Redis; a list
            longer than --window is queued as workers take it. URLs that come through a pipe,
            one per line, are queued as they come; their number is known when the pipe ends.
            """)

    @Argument(
        help: .file(
            "The list: URLs, JSON, CSV, TSV, Parquet or a sitemap, also packed by gzip or zstd. Files, folders, https: and hf: addresses, or - for standard input."
        ),
        completion: .file())
    var files: [String]

    @Flag(help: "Wait for the end of the batch; summary and exit code as run.")
    var wait = false

    @Option(
        help: .share(
            "With --wait: exit with 0 even if this many URLs failed; see --max-failures."
        ))
    var allowFailures: PrefetchSettings.Share?

    @Flag(help: "Continue to queue a list that was not queued to its end.")
    var resume = false

    @Flag(help: "Print the batch, or with --wait its result, as one JSON object.")
    var json = false

    @OptionGroup var verbosity: VerbosityArguments

    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>
    @OptionGroup(title: "List") var part: SettingOptions<ListPartOptions>
    @OptionGroup(title: "List") var table: SettingOptions<TableOptions>
    @OptionGroup(title: SettingTitles.batch) var batch: SettingOptions<SubmitBatch>
    @OptionGroup(title: "Output") var progress: ProgressArguments
    @OptionGroup(title: "Output") var secrets: SecretOptions

    func validate() throws {
        try progress.check(verbosity.level)
        if progress.progress != nil && !wait { throw ValidationError("--progress goes with --wait") }
        let slot = batch.record.turn.slot
        if part.dryRun, resume || wait || slot != nil {
            throw ValidationError("--dry-run takes neither --resume, --slot nor --wait")
        }
        if resume, !batch.given.isDisjoint(with: ["deadline", "finish_at", "max_failures"]) {
            throw ValidationError(
                "--resume continues a batch; --deadline, --finish-at and --max-failures stay as they are")
        }
        if slot != nil && resume { throw ValidationError("--resume continues a batch; it keeps its slot") }
    }

    func run() async throws {
        let given = try await GivenList(files, FetchSettings().complete(), location.stateFolder)
        let files = given.files
        let batch = try batch.settings()
        if part.dryRun {
            return try await DryRun(
                list: given, cache: location.cacheFolder, table: table.record, limit: part.limit,
                options: batch.options, isJSON: json
            ).run()
        }
        if wait, progress.mode(verbosity.level) == .json { Console.noteAsJSON() }
        let list = try await given.open(table.record, limit: part.limit)
        if BatchSubmission.asksForHits(list, batch.options), location.cacheFolder == nil {
            throw ValidationError(
                "queryDiskSync reads the cache while the list is queued: name it with --cache DIR")
        }
        BatchSubmission.warn(of: list.reading.lineOptions, batch.options)
        // With --cache alone the private Redis of that folder is made where it is missing.
        let redis = try location.record.placeOfWorker()
        var cache = location.cacheFolder.map { NamedCache.folder($0) }
        if case .cache(let folder) = redis { cache = .open(try CacheOpening.forWriting(folder)) }
        if let folder = try GivenList.folder(of: list, redis, location.stateFolder) {
            try list.keep(in: folder, copyMost: part.listCopyMax)
        }
        let stop = StopRequest()
        stop.listen()
        let name = GivenList.words(files, list.list) + (files.contains(where: ListFile.isStream) ? "" : part.words)
        let again = "\(Shell.program) submit \(resume ? "--resume " : "")\(name)\(location.words)"
        try await Session.whenReady(
            location.record, at: redis, makes: true, until: stop, hint: "submit it again: \(again)"
        ) { session in
            var submission = BatchSubmission(
                queue: session.waitingQueue, list: list, settings: batch, cache: cache)
            let made = try await session.untilStopped(stop) { [submission] in
                if resume { return try await unfinished(list, in: submission.queue, name) }
                return Made(id: try await submission.open())
            }
            guard let made else {
                throw PrefetchError(
                    .stopped, "stopped while the batch was made",
                    hint: "check with prefetch-coord status, or submit it again: \(again)")
            }
            let id = made.id
            submission.hasGrown = made.hasGrown
            if !json && !(wait && verbosity.level <= .quiet) { Console.print(id) }
            let isFed = if made.isFed { true } else { try await feed(id, submission, session, stop) }
            guard isFed else {
                throw PrefetchError(
                    .stopped, "stopped before the whole list was queued; what is queued runs on",
                    hint: "continue with: \(Shell.program) submit --resume \(name)\(location.words)")
            }
            if wait {
                return try await QueuedBatch(id, session, location.record).follow(
                    stop, progress, verbosity.level, allowed: allowFailures, isJSON: json)
            }
            if json, let status = try await session.queue.batches.status(of: id) {
                Console.print(BatchAnswer(status).line)
            }
            try await tellNext(id, list.reading.total, session)
        }
    }

    /// The batch of the list.
    private struct Made: Sendable {
        let id: String
        var hasGrown = false
        /// Whether nothing has to be queued any more.
        var isFed = false
    }

    /// The batch of this list that is not finished.
    private func unfinished(_ list: ListStream, in queue: PrefetchQueue, _ name: String) async throws -> Made {
        guard let found = try await UnfinishedBatch.find(list, in: queue) else {
            throw PrefetchError(
                .notFound, "no unfinished batch has this list",
                hint:
                    "submit it as a new one: prefetch-coord submit \(name)\(location.words)")
        }
        let status = found.status
        list.join(status, isFed: found.isFed)
        if !found.isFed { Console.note("continuing \(status.id): \(Wording.count(status.pushed)) URLs are queued") }
        return Made(id: status.id, hasGrown: found.hasGrown, isFed: found.isFed)
    }

    /// Feeds until the batch is sealed; false where a signal came first.
    private func feed(
        _ id: String, _ submission: BatchSubmission, _ session: Session, _ stop: StopRequest
    ) async throws -> Bool {
        let isFed = try await session.untilStopped(stop) {
            let isEmpty = try await submission.queue.workers.names().isEmpty
            let hint = isEmpty ? " (no worker is running: \(workerCommand(session)))" : ""
            let told = verbosity.level <= .quiet ? nil : tellQueued(id, session)
            defer { told?.cancel() }
            let end = try await submission.feed(id) { wait in
                for line in FeedingText.lines(wait, hint) { Console.note(line) }
            }
            guard case .closed(let state) = end, state != "done" else { return true }
            if let ended = try await submission.queue.batches.status(of: id), let text = BatchText.endedWhileFed(ended)
            {
                Console.note(text)
                guard wait else { throw ExitCode(4) }
                return true
            }
            throw PrefetchError(
                .notFound, "the batch \(id) was \(state) while it was fed", hint: "submit the list again")
        }
        return isFed ?? false
    }

    /// Says every 10 s how far the list is queued, and what that waits for.
    private func tellQueued(_ id: String, _ session: Session) -> Task<Void, Never> {
        let queue = session.queue
        return Task {
            while (try? await Task.sleep(for: .seconds(10))) != nil {
                guard let status = try? await queue.batches.status(of: id), status.state == .running, !status.isSealed
                else {
                    continue
                }
                let isAlone = (try? await queue.workers.names().isEmpty) ?? false
                Console.note(FeedingText.progress(status, isAlone: isAlone))
            }
        }
    }

    /// What was queued, and what to type next.
    private func tellNext(_ id: String, _ total: Int, _ session: Session) async throws {
        Console.note("queued \(Wording.count(total)) URLs as \(TerminalText.escaped(id))")
        if try await session.queue.workers.names().isEmpty {
            Console.note("no worker is running yet; start one: \(workerCommand(session))")
        }
        Console.note("watch it:     \(Shell.program) watch \(TerminalText.escaped(id))\(location.words)")
    }

    private func workerCommand(_ session: Session) -> String {
        let folder = location.cache ?? "./cache"
        return "prefetch-worker --redis \(Shell.quoted(session.redis.redactedURL)) --cache \(Shell.quoted(folder))"
            + (location.queue == "default" ? "" : " --queue \(location.queue)")
    }
}
