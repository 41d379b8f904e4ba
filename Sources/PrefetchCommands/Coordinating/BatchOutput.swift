internal import Glibc
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// Writes what became of a list: what `export`, and `run` and `retry` at their end, hand out.
struct BatchOutput: Sendable {
    let queue: PrefetchQueue
    let cache: NamedCache
    /// What is looked up behind one that is not open yet.
    var readOnly: [String] = []
    /// Manifests of the same batch from other machines.
    var merged: [String] = []
    /// Of shards: the run that writes them; how many it has written before its end.
    var owner: ShardOwner?
    var written = 0

    /// Writes the newest results of the chain that a batch belongs to.
    /// - Throws: `notFound`, `unreadableList`, `cacheUnavailable`, `inputOutput`, `redisUnavailable`, `stopped`.
    func write(_ id: String, to target: Target) async throws(PrefetchError) {
        let disk = try cache.forReading(readOnly)
        let chain = try await BatchChain.read(id, queue: queue)
        let export = try await BatchExport(chain, queue: queue, cache: disk)
        if !export.lost.isEmpty { Console.note(BatchText.lost(export.lost, of: chain.root)) }
        let others = try ManifestMerge(merged, shown: ShownURL.url)
        switch target {
        case .text(let text, let path): try await write(text, of: export, others, to: path)
        case .files(let path): try await fill(path, export, .lines)
        case .tree(let path): try await fill(path, export, .tree)
        case .sdWebImage(let path, let layout):
            try await fill(path, export, .sdWebImage(layout))
            for line in SDWebImageText.use(of: path, layout) { Console.print(line) }
        case .shards(let path, let options): try await fill(path, options, export, chain, from: disk)
        }
        Self.tell(export.absent.without(others.found))
        if chain.open > 0, !Console.isOutputClosed {
            Console.note("note: \(Wording.count(chain.open)) URLs of \(chain.newest.id) have no outcome yet")
        }
    }

    /// Checks, before anything is queued, that each target may replace the file in its place.
    /// - Throws: `cacheUnavailable` (73) if it may not; what reading the list throws.
    func check(_ id: String, _ target: Target, overwrites: Bool) async throws(PrefetchError) {
        guard case .text(_, let path?) = target else { return }
        let chain = try await BatchChain.read(id, queue: queue)
        try ReplacedFile.refuse(path, over: Self.lists(of: chain))
        guard !overwrites, ReplacedFile(path) != nil else { return }
        try await target.check(
            overwrites: overwrites, lists: [],
            entries: try await BatchEntries(of: chain.root, queue: queue))
    }

    /// The files that are the lists of a chain, and those they were made of.
    static func lists(of chain: BatchChain) -> [String] { chain.batches.flatMap { [$0.listPath] + $0.sources } }

    private func write(
        _ text: Text, of export: BatchExport, _ others: ManifestMerge, to path: String?
    ) async throws(PrefetchError) {
        let file = if let path { try OutputFile(path: path) } else { nil as OutputFile? }
        let written = Locked((lines: 0, images: 0, masked: 0))
        let put = { @Sendable (text: String, lines: Int, images: Int) throws(PrefetchError) -> Bool in
            if let file { try file.write(Array(text.utf8)) } else { Console.print(Array(text.utf8)) }
            written.withLock { written in
                written.lines += lines
                written.images += images
            }
            return file != nil || Console.takesMore
        }
        var table: BatchTable?
        if let form = text.table { table = BatchTable(form: form, columns: try await export.columns().map(\.name)) }
        _ = try put(table?.head ?? text.head, 0, 0)
        if text == .lock {
            try await export.forEachLock { locks throws(PrefetchError) in
                var known = locks.compactMap { $0 }
                var masked = 0
                for index in known.indices {
                    let url = ShownURL.url(known[index].url)
                    if url != known[index].url { masked += 1 }
                    known[index].url = url
                }
                written.withLock { [masked] in $0.masked += masked }
                return try put(known.map(\.line).joined(), locks.count, known.count)
            }
        } else {
            try await export.forEachGroup { [table] lines throws(PrefetchError) in
                var lines = lines
                try others.complete(&lines)
                let masked = lines.count { line in
                    (text != .failed || line.result.outcome?.isSkipped == true)
                        && ShownURL.url(line.result.url) != line.result.url
                }
                written.withLock { $0.masked += masked }
                let all = lines.map { table?.line($0) ?? text.line($0) }
                return try put(
                    all.joined(), text == .failed ? all.count { !$0.isEmpty } : lines.count,
                    lines.count { $0.image != nil })
            }
        }
        let (lines, images, masked) = written.withLock { $0 }
        if text == .lock, images < lines, !Console.isOutputClosed {
            Console.note("note: \(Wording.count(lines - images, "line")) without an image not in it")
        }
        if let note = ShownURL.note(ofMasked: masked), !Console.isOutputClosed { Console.note(note) }
        guard let file else { return }
        try file.commit()
        Console.note(
            "\(TerminalText.escaped(file.path)): \(Wording.count(lines)) lines, \(Wording.count(images)) with an image")
    }

    private func fill(
        _ path: String, _ export: BatchExport, _ naming: BatchExport.Naming
    ) async throws(PrefetchError) {
        // An app deletes what is older than a week: its files get the date of now, and those of the cache keep theirs.
        let copyMode = if case .sdWebImage = naming { ImageFolder.Manner.copies } else { ImageFolder.Manner.links }
        let folder = try ImageFolder(path: path, copyMode: copyMode) { reason in
            Console.note(
                "note: \(TerminalText.escaped(reason)): what cannot be linked is copied, and takes room of its own")
        }
        try await export.fill(folder, naming)
        let tally = folder.tally
        let (new, all) = (tally.linked + tally.copied, tally.linked + tally.copied + tally.present)
        var text = "\(TerminalText.escaped(path)): \(Wording.count(all)) images, \(Wording.count(new)) of them new"
        if tally.without > 0 { text += "; \(Wording.count(tally.without, "line")) without one" }
        if tally.unnamable > 0 { text += "; \(Wording.count(tally.unnamable)) with a name that no file can have" }
        Console.note(text)
    }

    /// Writes shards of the batch of a run while it runs, until all are written or the task is cancelled.
    /// * `list`: what it is fed from; `limit`: sets how far.
    /// * `written`: called at the end, whatever that is, with how many are new.
    func follow(
        _ id: String, _ list: ListStream, _ limit: FeedLimit.Writer, isFed: Bool, to target: Target,
        written: (Int) -> Void
    ) async throws(PrefetchError) {
        guard case .shards(let path, let options) = target else { return }
        let chain = try await BatchChain.read(id, queue: queue)
        let export = try await BatchExport(chain, queue: queue, cache: try cache.forReading(readOnly), list: list)
        let (shards, writer) = try shards(path, options, export, chain, from: try cache.forReading(readOnly))
        defer { written(shards.tally.new) }
        try await writer.follow(isFed ? nil : list, limit) { lines in
            Console.note(
                "note: shards have waited \(ShardExport.slowTimeout.components.seconds / 60) minutes for "
                    + "\(Wording.count(lines, "line")) of slow hosts; those that have not begun end as timeout, which "
                    + "this fetches later: retry \(id)")
        }
    }

    private func shards(
        _ path: String, _ options: ShardOptions, _ export: BatchExport, _ chain: BatchChain, from cache: DiskCache
    ) throws(PrefetchError) -> (ImageShards, ShardExport) {
        let member = Self.member(options, chain)
        var options = options
        if options.form == .tables, options.added.isEmpty { options.added = ImageShards.added(in: path) }
        let shards = try ImageShards(
            path: path, options, member: member, of: ShardBatch(chain), from: cache, notice: Self.tell)
        let writer = ShardExport(chain, queue: queue, export: export, into: shards, from: cache, owner: owner) {
            [options]
            columns throws(PrefetchError) in
            let caption = try BatchExport.captionColumn(options.captionColumn, among: columns.map(\.name))
            let text = ShardText(columns, caption: caption, image: member, added: options.added)
            return ShardForm(text.columns, caption: caption) { text.sample($0, key: $1) }
        }
        return (shards, writer)
    }

    /// What happens at a bucket.
    fileprivate static let tell = { @Sendable (text: String) in Console.note("note: \(TerminalText.escaped(text))") }

    private static func member(_ options: ShardOptions, _ chain: BatchChain) -> String {
        let format = chain.root.options.variant?.format ?? .jpeg
        return options.imageMember ?? (format == .jpeg ? "jpg" : format.fileExtension)
    }

    private func fill(
        _ path: String, _ options: ShardOptions, _ export: BatchExport, _ chain: BatchChain, from cache: DiskCache
    ) async throws(PrefetchError) {
        let (shards, writer) = try shards(path, options, export, chain, from: cache)
        let form = try await writer.writeAll { shard in
            Console.note(
                "note: another run of this list writes shard \(shard); waiting for it, a minute at most if it was killed"
            )
        }
        let (caption, tally, shown) = (form.caption, shards.tally, TerminalText.escaped(path))
        Console.note(
            "\(shown): \(Wording.count(tally.images, "image")) in \(Wording.count(tally.shards, "shard")), "
                + "\(Wording.count(tally.new + written)) of them new"
                + (tally.duplicates > 0 ? "; \(Wording.count(tally.duplicates, "duplicate")) left out" : "")
                + (caption.map { "; captions from the column \(TerminalText.escaped($0))" } ?? ""))
        if tally.kept > 0 {
            Console.note(
                "note: \(Wording.count(tally.kept, "shard")) stayed: they have images that are not in the cache any more"
            )
        }
        if !shards.hasParquet, options.sidecar == nil {
            var tables = options
            tables.form = .tables
            Console.note(
                "note: there is no duckdb, so the tables beside the archives are .jsonl; with one (pip install duckdb-cli): "
                    + "export \(Target.shards(path, tables).words)")
        }
        if Self.member(options, chain) == ShardOptions.ownMember {
            Console.note("note: readers that want one name for all images leave out those of another format")
        }
    }

    /// Where the images are that were not in the cache.
    private static func tell(_ absent: BatchExport.Absent) {
        guard !Console.isOutputClosed else { return }
        if let elsewhere = CacheText.elsewhere(absent.elsewhere) { Console.note("note: \(elsewhere)") }
        if absent.missing > 0 {
            Console.note(
                "note: \(Wording.count(absent.missing, "image")) not in the cache any more; run the list again to fetch what is missing"
            )
        }
    }
}

/// How an app reads what was exported.
enum SDWebImageText {
    /// Where to put it, and a line of code.
    static func use(of path: String, _ layout: SDWebImageFileName.Layout) -> [String] {
        let top = layout.folder.split(separator: "/").first.map(String.init) ?? ""
        let code =
            switch layout {
            case .v5:
                "let images = SDImageCache(namespace: \"default\", diskCacheDirectory: "
                    + "Bundle.main.bundlePath + \"/\(top)\")"
            case .v3, .v4:
                "[SDImageCache.sharedImageCache addReadOnlyCachePath:[NSBundle.mainBundle.bundlePath "
                    + "stringByAppendingPathComponent:@\"\(layout.folder)\"]];"
            }
        return [
            "as the app's own cache:   copy \(Shell.quoted(Shell.path("\(path)/\(top)"))) into its Library/Caches",
            "out of the app's bundle:  \(code)",
        ]
    }
}

// MARK: - Target

extension BatchOutput {
    /// Where to, and as what.
    enum Target: Sendable {
        /// A text of a line for each line of the list, into a file; nil is standard output.
        case text(Text, String?)
        /// Images into a folder.
        case files(String)
        /// Images into a folder that is laid out as the URLs are.
        case tree(String)
        /// Images as SDWebImage's cache has them.
        case sdWebImage(String, SDWebImageFileName.Layout)
        /// Shards as img2dataset has them.
        case shards(String, ShardOptions)

        var isFolder: Bool {
            if case .text = self { false } else { true }
        }

        /// NDJSON into a file; nil is standard output.
        static func lines(_ path: String?) -> Target { .text(.jsonl, path) }

        /// Checks that it can be written, and makes the folder.
        /// - Throws: `cacheUnavailable` (73).
        func check() throws(PrefetchError) {
            switch self {
            case .text(_, let path?): try OutputFile.check(path)
            case .text: return
            case .files(let path), .tree(let path), .sdWebImage(let path, _): _ = try ImageFolder(path: path)
            case .shards(let path, let options): try ImageShards.check(path, options, notice: BatchOutput.tell)
            }
        }

        /// Checks that it may replace the file in its place.
        /// * `lists`: the files that are the list; none of them is ever replaced.
        /// * `entries`: of the list.
        /// - Throws: `cacheUnavailable` (73) if it may not.
        func check(overwrites: Bool, lists: [String], entries: BatchEntries) async throws(PrefetchError) {
            guard case .text(_, let path?) = self else { return }
            try ReplacedFile.refuse(path, over: lists)
            guard !overwrites, let file = ReplacedFile(path) else { return }
            guard try await file.isManifest(of: entries, spellings: BatchTable.spellings) else {
                throw file.refusal("a manifest of this batch")
            }
        }

        /// A path or an address as a word of a shell.
        static func quoted(_ path: String) -> String {
            Shell.quoted(ShardAddress.isBucket(path) ? path : Shell.path(path))
        }

        /// The words of `export` that write it.
        var words: String {
            return switch self {
            case .text(let text, let path): "--format \(text.rawValue) --output \(Self.quoted(path ?? "-"))"
            case .files(let path): "--format files --out \(Self.quoted(path))"
            case .tree(let path): "--format tree --out \(Self.quoted(path))"
            case .sdWebImage(let path, let layout):
                "--format sdwebimage --out \(Self.quoted(path)) --sdwebimage-version \(layout.rawValue)"
            case .shards(let path, let options):
                "--format \(options.form.rawValue) --out \(Self.quoted(path)) --per-shard \(options.perShard)"
                    + (options.captionColumn.map { " --caption-column \(Shell.quoted($0))" } ?? "")
                    + (options.imageMember.map { " --image-member \($0)" } ?? "")
                    + (options.sidecar.map { " --sidecar \($0.rawValue)" } ?? "")
                    + (options.added.isEmpty
                        ? "" : " --add-columns \(options.added.map(\.rawValue).joined(separator: ","))")
            }
        }
    }

    /// What is written about each line of the list.
    enum Text: String, Sendable, CaseIterable {
        /// An object of JSON.
        case jsonl
        /// Values told apart by commas, or by tabs.
        case csv, tsv
        /// The URLs that were skipped: a list to run again.
        case failed
        /// URL, SHA-256, length and pixels of each image: what `run` checks.
        case lock

        /// How a table is written; nil of what is none.
        var table: BatchTable.Form? {
            switch self {
            case .csv: .commas
            case .tsv: .tabs
            case .jsonl, .failed, .lock: nil
            }
        }

        /// What stands in front of all lines.
        var head: String { self == .lock ? ImageLock.head : "" }

        /// A line with its end; empty for a line that this text leaves out.
        func line(_ line: ExportedLine) -> String {
            switch self {
            case .jsonl: return line.json.text + "\n"
            // Written by ``BatchTable``, which has the columns of all lines.
            case .csv, .tsv: return ""
            case .failed:
                guard let outcome = line.result.outcome, outcome.isSkipped else { return "" }
                // A line that is not a URL cannot be requested again: it stays as a comment.
                let url = ShownURL.url(line.result.url)
                return outcome == .invalidURL ? "# \(url)\n" : "\(url)\n"
            // Written by ``BatchExport/forEachLock(_:)``, which needs the digest of every image.
            case .lock: return ""
            }
        }
    }
}
