internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import Threading
internal import WebImage

/// `prefetch-coord heal`: what shards lack.
struct HealCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "heal",
        abstract: "Fetch what shards have no image for.",
        usage: "prefetch-coord heal <dir> [<options>]",
        discussion: """
            Examples:
              prefetch-coord heal laion --dry-run
              prefetch-coord heal laion --resize 256 --image-format jpeg --yes

            The folder has WebDataset shards of img2dataset or of run. Their tables say which
            lines have no image; only these are requested. Images that are there are
            verified; a damaged one is requested too. Shards that get an image are written
            again, with the same keys and columns; the others stay. Options of run about
            requests, images and workers are valid, and images have to be made as the
            others were. It says what it would do and asks; without a terminal it needs
            --yes. Exit codes as of run.
            """)

    @Argument(help: .folder("The folder of the shards."), completion: .directory)
    var folder: String

    @Flag(help: "Print what would be requested; request nothing.")
    var dryRun = false

    @OptionGroup var confirmation: Confirmation

    @Argument(parsing: .allUnrecognized, help: .value("option", "Options of run about requests, images and workers."))
    var others: [String] = []

    private static let mostReasons = 5

    func validate() throws {
        guard ShardAddress.isBucket(folder) else { return }
        throw ValidationError("heal takes a folder; for a bucket run the list again with the same --out")
    }

    func run() async throws {
        let shards = try FoundShards(folder)
        let threads = ThreadPool(threads: 1, name: "heal")
        let plan = try await threads.run { () throws(PrefetchError) in try shards.plan() }
        tell(plan)
        guard !plan.incomplete.isEmpty else { return Console.note("nothing is missing") }
        if dryRun { return }
        let command = try command()
        _ = try DescriptorBudget.raised()
        var batch = try command.batch.settings()
        let fetch = try command.workerSettings(&batch)
        try Self.check(plan, batch.options)
        try confirmation.ask(
            "request \(Wording.count(plan.lines - plan.images)) URLs, and write \(Wording.count(plan.incomplete.count, "shard")) again",
            "heal")
        let cache = try RunCache(command.cacheFolder, StateOption.folder(command.state), fetch.prepareCache())
        let lists = try cache.state.healing()
        let files = plan.incomplete.map { "\(lists)/\($0).jsonl" }
        // What was queued of them has a copy; another time they are written again.
        defer { for file in files { unlink(file) } }
        var whole = 0
        for (number, file) in zip(plan.incomplete, files) {
            whole += try await threads.run { [batch] () throws(PrefetchError) in
                try shards.adopt(number, of: plan, into: cache.disk.images, batch.options, list: file)
            }
        }
        let list = try ListStream(files)
        try list.keep(in: cache.state.lists())
        var settings = command.settings(fetch, workers: command.workers ?? RunCommand.defaultWorkers)
        settings.outputs = settings.outputs.map { target in
            guard case .shards(let path, let options) = target else { return target }
            return .shards(path, Self.options(options, plan))
        }
        Console.note("\(Wording.count(whole, "image")) of these shards are whole")
        try await BatchRun(settings: settings, cache: cache, source: .list(list, batch, cache: cache.disk)).run()
    }

    private func tell(_ plan: FoundShards.Plan) {
        let missing = plan.lines - plan.images
        Console.note(
            "\(TerminalText.escaped(folder)): \(Wording.count(plan.shards, "shard")) of \(Wording.count(plan.lines)) lines, "
                + "\(Wording.count(missing)) of them without an image, in \(Wording.count(plan.incomplete.count, "shard"))"
        )
        for reason in plan.reasons.prefix(Self.mostReasons) {
            Console.note("  \(Wording.count(reason.count))  \(TerminalText.escaped(reason.text))")
        }
        if plan.reasons.count > Self.mostReasons {
            Console.note("  and \(Wording.count(plan.reasons.count - Self.mostReasons)) other reasons")
        }
        if let first = plan.unknown.first {
            Console.note(
                "note: \(Wording.count(plan.unknown.count, "shard")) have no table, such as \(first), and stay as they are: "
                    + "run their list again")
        }
    }

    /// The command that fetches the rest.
    private func command() throws -> RunCommand {
        let words = [
            "-", "--format", "webdataset", "--out", folder, "--cache", ImageShards.cache(in: folder),
        ]
        guard let command = try SettingWords.parse(RunCommand.self, words + others) as? RunCommand else {
            throw PrefetchError(.software, "run is no command")
        }
        let refused = command.part.given.union(command.table.given).union(command.shards.given)
            .subtracting(["caption_column"]).sorted()
        guard refused.isEmpty else {
            let names = refused.map { "--" + $0.replacing("_", with: "-") }.joined(separator: ", ")
            throw ValidationError("heal takes lines, columns and names from the shards, and no \(names)")
        }
        return command
    }

    /// Shards stay as they were.
    private static func options(_ given: ShardOptions, _ plan: FoundShards.Plan) -> ShardOptions {
        var options = given
        (options.perShard, options.imageMember, options.sidecar) = (plan.perShard, plan.member, plan.sidecar)
        (options.numbers, options.replaces, options.added) = (plan.incomplete, true, plan.added)
        return options
    }

    /// - Throws: `configuration` if the images that are there were made in another way.
    private static func check(_ plan: FoundShards.Plan, _ options: BatchOptions) throws(PrefetchError) {
        let isResized = options.storedVariant?.resize != nil
        guard plan.resized * 2 > plan.images, let example = plan.example else { return }
        let (from, to) = (example.from, example.to)
        guard let variant = options.storedVariant, isResized else {
            throw PrefetchError(
                .configuration,
                "images there were made smaller, such as \(to.width)x\(to.height) of \(from.width)x\(from.height)",
                hint: "make the others as they were: --resize \(max(to.width, to.height))")
        }
        let size = VariantRecipe.size(of: from, variant)
        guard abs(size.width - to.width) > 1 || abs(size.height - to.height) > 1 else { return }
        throw PrefetchError(
            .configuration,
            "with these options \(from.width)x\(from.height) would become \(size.width)x\(size.height), and is \(to.width)x\(to.height) there",
            hint: "see --resize, --fit and --upscale")
    }
}
