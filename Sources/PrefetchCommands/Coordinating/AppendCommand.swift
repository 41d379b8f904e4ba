internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// `prefetch-coord append`: one more list for a batch that was submitted open.
struct AppendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "append",
        abstract: "Add a list to a batch that was submitted with --open.",
        usage: "prefetch-coord append <batch> <file> [<options>]",
        discussion: """
            Examples:
              prefetch-coord append week tuesday.txt --redis redis://host:6379/0
              find-urls | prefetch-coord append week -

            The batch reads as its lists one after the other: line numbers run on through
            them. The same command again goes on where it was stopped, and adds no list
            twice; --again does. It returns when the whole list is in Redis.
            """)

    @Argument(help: "The batch, or the beginning of its name.")
    var batch: String

    @Argument(help: "The list: one URL a line, a pipe, or - for standard input.", completion: .file())
    var file: String

    @Flag(help: "Only go on with a list that the batch has and that was not queued to its end.")
    var resume = false

    @Flag(help: "Add the list also where the batch has it already.")
    var again = false

    @Option(help: "Jobs that wait in Redis, which bounds its memory: auto, all, or a number.")
    var window = "auto"

    @Option(help: "URLs a job, 1 to 256; by default a 64th of the list.")
    var jobSize: Int?

    @Flag(help: "Print the batch as one line of JSON.")
    var json = false

    @Option(
        help: "How the list is written: auto, plain, jsonl, csv, tsv, sitemap (of an index, the sitemaps beside it).")
    var inputFormat = ListFormat.auto

    @OptionGroup(title: "Lists") var empty: EmptyListOptions
    @OptionGroup(title: "Lists that are tables") var table: TableOptions
    @OptionGroup(title: "Where") var location: RedisLocation

    func validate() throws {
        if resume && again { throw ValidationError("--resume adds nothing; give it or --again") }
        guard window == "auto" || window == "all" || (Int(window) ?? 0) > 0 else {
            throw ValidationError("--window is auto, all or a number of jobs, not '\(window)'")
        }
        if let jobSize, !(1...256).contains(jobSize) { throw ValidationError("--job-size is a number from 1 to 256") }
    }

    func run() async throws {
        // No folder is made in a cache that is none: the session says what is wrong with it.
        if case .cache(let folder) = try location.place(), !PrivateRedis.isOurs(cache: folder) {
            return try await Session.with(location) { _ in }
        }
        // Before Redis is asked: a pipe may take as long as it likes, and Ctrl-C ends that.
        let given = try GivenList(
            file, cache: location.cacheFolder, format: inputFormat, table: table, empty: empty)
        let isAdded = Locked(false)
        do { try await add(given, isAdded) } catch {
            if !isAdded.withLock({ $0 }) { given.removeCopy() }
            throw error
        }
    }

    /// * `isAdded`: becomes true once the list is the batch's.
    private func add(_ given: GivenList, _ isAdded: Locked<Bool>) async throws {
        let stop = StopRequest()
        TerminationSignals.install { signal, count in stop.request(signal: signal, count: count) }
        try await Session.whenThere(location, until: stop, hint: "the same command again adds it") { session in
            let list = given.list
            if list.lineOptions.contains(.queryDiskSync) {
                throw ValidationError(
                    "queryDiskSync is for a list of its own; a batch that is open has its hits from workers")
            }
            let id = try await session.queue.catalog.resolve(batch)
            let appender = ListAppender(queue: session.patient, batch: id, list: list, window: window, jobSize: jobSize)
            if resume { try await requireUnfinished(list, of: id, session.queue) }
            let output = OpenBatchOutput(
                id: id, list: ListFile.isStream(file) ? list.path : file, session: session, location: location.words)
            let added = try await output.add(appender, again: again, stop)
            isAdded.withLock { $0 = true }
            try await output.feed(appender, added, stop)
            // A copy of a list that the batch has already is wanted by nobody.
            if added.segment.path != list.absolutePath { given.removeCopy() }
            if json {
                if let status = try await session.queue.batches.status(of: id) {
                    Console.print(BatchJSON.object(status).text)
                }
            } else {
                Console.print(text(added, of: id))
            }
        }
    }

    private func requireUnfinished(_ list: URLList, of id: String, _ queue: PrefetchQueue) async throws {
        let pushed = try await queue.batches.status(of: id)?.pushed ?? 0
        guard try await queue.lists.segments(of: id).contains(where: { $0.hash == list.hash && $0.end > pushed }) else {
            throw PrefetchError(
                .notFound, "\(id) has no such list that is not queued to its end",
                hint: "add it: prefetch-coord append \(id) \(Shell.quoted(file))")
        }
    }

    private func text(_ added: ListAppender.Added, of id: String) -> String {
        let segment = added.segment
        let urls = "\(Wording.count(segment.total)) URLs"
        let lines = "lines \(Wording.count(segment.line + 1)) to \(Wording.count(segment.line + segment.lines))"
        if added.isNew { return "\(TerminalText.escaped(id)): added \(urls) as its \(lines)" }
        return added.wasFed
            ? "\(TerminalText.escaped(id)): has these \(urls) already as its \(lines); nothing was added"
            : "\(TerminalText.escaped(id)): queued the rest of \(urls), its \(lines)"
    }
}
