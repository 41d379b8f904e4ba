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
            "The list: URLs, JSON objects, CSV, TSV or a sitemap, also gzipped; several files or folders are one; - is standard input."
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

    @OptionGroup(title: "Redis") var location: RedisLocation
    @OptionGroup(title: "List") var part: ListPartOptions
    @OptionGroup(title: "List") var table: TableOptions
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
        let files = try ListPaths.files(files)
        let batch = try batch.settings()
        if part.dryRun {
            return try await DryRun(
                files: files, cache: location.cacheFolder, table: table, limit: part.limit,
                options: batch.options, isJSON: json
            ).run()
        }
        if wait, progress.mode(verbosity.level) == .json { Console.noteAsJSON() }
        let piped =
            resume || part.limit != nil
            ? nil : try GivenList.pipe(files, kept: ListFolder.of(location), table: table)
        let pipe = piped?.pipe
        let given = try pipe == nil ? givenList(files, copy: piped?.copy) : nil
        guard let read = pipe?.list ?? given?.list else { return }
        if BatchSubmission.asksForHits(read, batch.options), location.cacheFolder == nil {
            throw ValidationError(
                "queryDiskSync reads the cache while the list is queued: name it with --cache DIR")
        }
        BatchSubmission.warn(of: read.lineOptions, batch.options)
        // With --cache alone the private Redis of that folder is made where it is missing.
        let redis = try location.placeOfWorker()
        if case .cache(let folder) = redis { _ = try CacheOpening.forWriting(folder) }
        let list = pipe == nil ? try keepingCopy(of: read, redis) : read
        let stop = StopRequest()
        TerminationSignals.install { signal, count in stop.request(signal: signal, count: count) }
        let name = GivenList.words(files, list) + (files.contains(where: ListFile.isStream) ? "" : part.words)
        let again = "\(Shell.program) submit \(resume ? "--resume " : "")\(name)\(location.words)"
        try await Session.whenReady(
            location, at: redis, makes: true, until: stop, hint: "submit it again: \(again)"
        ) { session in
            let submission = BatchSubmission(
                queue: session.waitingQueue, list: list, settings: batch, cache: location.cacheFolder, pipe: pipe)
            let made = try await session.untilStopped(stop) {
                if resume { return try await unfinished(submission.queue, list, name) }
                do { return try await submission.open() } catch {
                    // Nobody needs the copy of a list that is no batch's.
                    pipe?.remove()
                    given?.removeCopy()
                    throw error
                }
            }
            guard let id = made else {
                throw PrefetchError(
                    .stopped, "stopped while the batch was made",
                    hint: "check with prefetch-coord status, or submit it again: \(again)")
            }
            if !json && !(wait && verbosity.level <= .quiet) { Console.print(id) }
            guard try await feed(id, submission, session, stop) else {
                throw PrefetchError(
                    .stopped, "stopped before the whole list was queued; what is queued runs on",
                    hint: "continue with: \(Shell.program) submit --resume \(name)\(location.words)")
            }
            if wait {
                return try await QueuedBatch(id, session, location).follow(
                    stop, progress, verbosity.level, allowed: allowFailures, isJSON: json)
            }
            if json, let status = try await session.queue.batches.status(of: id) {
                Console.print(BatchAnswer(status).line)
            }
            try await tellNext(id, pipe?.total ?? list.total, session)
        }
    }

    /// The list, of which a copy is made while it is fed.
    private func keepingCopy(of list: URLList, _ redis: RedisLocation.Place) throws(PrefetchError) -> URLList {
        var list = list
        switch redis {
        case .cache(let folder): list.keepCopy(in: try ListFolder.state(of: folder, location.stateFolder).make())
        case .server:
            // Results are elsewhere: a user without a state folder has to keep the list.
            if let folder = try? location.stateFolder.lists() { list.keepCopy(in: folder) }
        }
        return list
    }

    /// The list, read and checked.
    private func givenList(_ files: [String], copy: String?) throws(PrefetchError) -> GivenList {
        try GivenList(
            files, copy: copy, kept: ListFolder.of(location), table: table, limit: part.limit)
    }

    /// The batch of this list that is not sealed.
    private func unfinished(_ queue: PrefetchQueue, _ list: URLList, _ name: String) async throws -> String {
        guard let running = try await queue.catalog.newest(ofList: list.hash, path: list.absolutePath).running else {
            throw PrefetchError(
                .notFound, "no unfinished batch has this list",
                hint:
                    "submit it as a new one: prefetch-coord submit \(name)\(location.words)")
        }
        if !running.isSealed {
            Console.note(
                "continuing \(running.id): \(Wording.count(running.pushed)) of \(Wording.count(list.total)) URLs are queued"
            )
        }
        return running.id
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
            let end = try await feedOrCancel(id, submission, hint)
            if let pipe = submission.pipe { table.judge(pipe.unknownMembers, columns: [], of: pipe.name) }
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

    /// Feeds; a pipe with a line that is none of a list ends its batch.
    private func feedOrCancel(
        _ id: String, _ submission: BatchSubmission, _ hint: String
    ) async throws(PrefetchError) -> ListFeeder.End {
        do throws(PrefetchError) {
            let end = try await submission.feed(id) { wait in
                for line in FeedingText.lines(wait, hint) { Console.note(line) }
            }
            if let pipe = submission.pipe { try GivenList.requireURLs(pipe.total, of: pipe.name) }
            return end
        } catch {
            guard submission.pipe != nil, error.kind == .unreadableList else { throw error }
            try await bridgingErrors { () async throws(RedisError) in
                _ = try await submission.queue.batches.cancel(batch: id)
            }
            Console.note("cancelled \(TerminalText.escaped(id)); what it has fetched stays in the cache")
            throw error
        }
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
