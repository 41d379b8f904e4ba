internal import Glibc
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// Writes what became of a list: what `export`, and `run` and `retry` at their end, hand out.
struct BatchOutput: Sendable {
    let queue: PrefetchQueue
    /// The cache folder.
    let cache: String
    /// What is looked up behind it.
    var readOnly: [String] = []
    /// Where the list is now, if not where it was read.
    var listPath: String?

    /// Writes the newest results of the chain that a batch belongs to.
    /// - Throws: `notFound`, `unreadableList`, `cacheUnavailable`, `inputOutput`, `redisUnavailable`, `stopped`.
    func write(_ id: String, to target: Target) async throws(PrefetchError) {
        let disk = try Self.openCache(cache, readOnly)
        let chain = try await BatchChain.read(id, queue: queue)
        let export = try await BatchExport(chain, queue: queue, cache: disk, listPath: listPath)
        switch target {
        case .text(let text, let path): try await write(text, of: export, to: path)
        case .files(let path): try await fill(path, export, .lines)
        case .tree(let path): try await fill(path, export, .tree)
        case .sdWebImage(let path, let layout):
            try await fill(path, export, .sdWebImage(layout))
            for line in SDWebImageText.use(of: path, layout) { Console.print(line) }
        case .webDataset(let path, let count): try await fill(path, perShard: count, export)
        }
        if chain.open > 0, !Console.isOutputClosed {
            Console.note("note: \(Wording.count(chain.open)) URLs of \(chain.newest.id) have no outcome yet")
        }
    }

    /// The cache folder, only for reading; 66 where there is none.
    static func openCache(_ folder: String, _ readOnly: [String] = []) throws(PrefetchError) -> DiskCache {
        guard access(folder, F_OK) == 0 else {
            throw PrefetchError(.notFound, "there is no folder \(folder)", hint: "name the cache: --cache DIR")
        }
        var configuration = DiskCache.Configuration()
        configuration.isReadOnly = true
        configuration.readOnlyDirectories = readOnly
        do throws(WebImageError) {
            return try DiskCache(directory: folder, configuration: configuration)
        } catch {
            throw PrefetchError(
                .cacheUnavailable, error.message, hint: "name a cache that this user may read: --cache DIR")
        }
    }

    private func write(_ text: Text, of export: BatchExport, to path: String?) async throws(PrefetchError) {
        let file = if let path { try OutputFile(path: path) } else { nil as OutputFile? }
        let written = Locked((lines: 0, images: 0, masked: 0))
        let put = { @Sendable (text: String, lines: Int, images: Int) throws(PrefetchError) -> Bool in
            if let file { try file.write(Array(text.utf8)) } else { Console.print(Array(text.utf8)) }
            written.withLock { written in
                written.lines += lines
                written.images += images
            }
            return file != nil || (!Console.isOutputClosed && Console.outputError == nil)
        }
        var table: BatchTable?
        if let form = text.table { table = BatchTable(form: form, columns: try await export.columnNames()) }
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
        let manner = if case .sdWebImage = naming { ImageFolder.Manner.copies } else { ImageFolder.Manner.links }
        let folder = try ImageFolder(path: path, manner: manner) { reason in
            Console.note(
                "note: \(TerminalText.escaped(reason)): what cannot be linked is copied, and takes room of its own")
        }
        try await export.fill(folder, naming)
        let tally = folder.tally
        let (new, all) = (tally.linked + tally.copied, tally.linked + tally.copied + tally.present)
        var text = "\(TerminalText.escaped(path)): \(Wording.count(all)) images, \(Wording.count(new)) of them new"
        if tally.without > 0 { text += "; \(Wording.count(tally.without)) lines have none" }
        if tally.unnamable > 0 { text += "; \(Wording.count(tally.unnamable)) have a name that no file can have" }
        Console.note(text + Self.missing(tally.missing))
    }

    private func fill(_ path: String, perShard: Int, _ export: BatchExport) async throws(PrefetchError) {
        let shards = try ImageShards(path: path, perShard: perShard)
        try await export.fill(shards) { Array((BatchJSON.sample($0).text + "\n").utf8) }
        let tally = shards.tally
        Console.note(
            "\(TerminalText.escaped(path)): \(Wording.count(tally.images, "image")) in \(Wording.count(tally.shards, "archive")), "
                + "\(Wording.count(tally.new)) of them new" + Self.missing(tally.missing))
    }

    private static func missing(_ count: Int) -> String {
        count > 0 ? "; \(Wording.count(count)) are not in the cache any more, run the list again to fetch them" : ""
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
