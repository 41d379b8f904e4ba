internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// `prefetch-coord run`: everything in one command.
struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Download a list of image URLs with a private Redis and workers.",
        usage: "prefetch-coord run <file> ... [<options>]",
        discussion: """
            Examples:
              prefetch-coord run urls.txt
              prefetch-coord run urls.txt --cache ./images -n 2 --allow-net 10.0.0.0/8

            Run the same command again to continue after a stop, or to fetch what a
            finished run has missed (--retry-failed: also what is blacklisted). Exit code:
            0 every wanted image is there, 3 some failed or none is there, 4 cancelled,
            75 stopped.
            """)

    @Argument(
        help: .file(
            "The list: URLs, JSON, CSV, TSV, Parquet or a sitemap, also packed by gzip or zstd. Files, folders, https: and hf: addresses, or - for standard input."
        ),
        completion: .file())
    var files: [String]

    @Option(
        help: .folder("Cache folder. (default: ./cache; shards DIR/.prefetch)"))
    var cache: String?

    @Option(help: .folder(StateOption.about), completion: .directory)
    var state: String?

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

    @OptionGroup(title: "List") var part: SettingOptions<ListPartOptions>
    @OptionGroup(title: "List") var table: SettingOptions<TableOptions>
    @OptionGroup(title: SettingTitles.batch) var batch: SettingOptions<RunBatch>
    @OptionGroup(title: SettingTitles.worker) var fetch: SettingOptions<RunFetch>
    @OptionGroup(title: "Output") var progress: ProgressArguments
    @OptionGroup(title: "Output") var secrets: SecretOptions

    func validate() throws {
        _ = try targets()
        try progress.check(verbosity.level)
        if let workers, !(1...256).contains(workers) { throw ValidationError("--workers is a number from 1 to 256") }
        guard cache?.isEmpty != true else { throw ValidationError("--cache needs a folder") }
        if let state, state.isEmpty { throw ValidationError("--state needs a folder") }
    }

    func run() async throws {
        var batch = try batch.settings()
        if part.dryRun { return try await dryRun(batch) }
        if progress.mode(verbosity.level) == .json { Console.noteAsJSON() }
        // Its workers have the same limit.
        let budget = try DescriptorBudget.raised()
        let fetch = try workerSettings(&batch)
        if verbosity.level > .quiet, let note = budget.note(wanted: fetch.maxConcurrentDownloads) { Console.note(note) }
        // A list that cannot be used leaves no cache folder behind.
        let given = try await GivenList(files, fetch, StateOption.folder(state))
        let list = try await given.open(tableWithCaptions, limit: part.limit)
        for target in try targets() { try target.check() }
        let cache = try RunCache(cacheFolder, StateOption.folder(state), fetch.prepareCache())
        try list.keep(in: cache.state.lists(), copyMost: part.listCopyMax)
        for target in try targets() {
            try await target.check(overwrites: output.overwrite, lists: given.files, entries: BatchEntries(list))
        }
        BatchSubmission.warn(of: list.reading.lineOptions, batch.options)
        if verbosity.level > .quiet, let note = try await ContactNote.line(for: list, batch.options.requests, fetch) {
            Console.note(note)
        }
        try await BatchRun(
            command: self, cache: cache, list: list, batch: batch, fetch: fetch,
            workerCount: workers ?? (batch.options.compat == nil ? Self.defaultWorkers : 1)
        ).run()
    }

    /// The settings of its workers, which accept images as large as the batch asks for, and get the headers that stay out of Redis.
    func workerSettings(_ batch: inout BatchSettings) throws(PrefetchError) -> FetchSettings {
        var settings = try fetch.record.complete()
        settings.maxPixels = max(settings.maxPixels, batch.options.rules.maxPixels ?? 0)
        settings.headers = batch.takeSecretHeaders()
        // SDWebImagePrefetcher's number, for all workers.
        if let compat = batch.options.compat, !fetch.given.contains("max_concurrent_downloads") {
            settings.maxConcurrentDownloads = .fixed(compat.maxConcurrentPrefetchCount)
        }
        return settings
    }

    private func dryRun(_ batch: BatchSettings) async throws {
        let given = try await GivenList(files, fetch.record.complete(), StateOption.folder(state))
        try await DryRun(
            list: given, cache: cacheFolder, readOnly: fetch.record.readOnlyCaches,
            table: tableWithCaptions,
            limit: part.limit, options: batch.options, isJSON: json
        ).run()
    }

    private var tableWithCaptions: TableOptions {
        var table = table.record
        if let column = shards.captionColumn { table.keep(column) }
        return table
    }

    func targets() throws -> [BatchOutput.Target] { try output.record.targets(shards.record) }

    /// The options that are not about the list.
    func settings(_ fetch: FetchSettings, workers: Int) -> RunSettings {
        RunSettings(
            cache: Shell.path(cacheFolder), state: state,
            workers: workers, allowFailures: allowFailures, json: json,
            progress: progress.mode(verbosity.level), isColoured: progress.isColoured, verbosity: verbosity.level,
            fetch: fetch, outputs: (try? targets()) ?? [],
            showsSecrets: secrets.showSecrets)
    }

    /// Images that end in archives are kept twice only where people have a cache for it.
    var cacheFolder: String {
        if let cache { return cache }
        guard case .shards(let folder, let options)? = try? targets().last, options.form == .webDataset,
            !ShardAddress.isBucket(folder), access("./cache", F_OK) != 0
        else { return "./cache" }
        return ImageShards.cache(in: folder)
    }

    /// One a core, at most 4.
    static var defaultWorkers: Int { min(4, max(1, Processors.count)) }
}
