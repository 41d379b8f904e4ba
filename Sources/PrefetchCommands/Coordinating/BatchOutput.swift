internal import Glibc
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// Writes what became of a list: what `export`, and `run` and `retry` at their end, hand out.
struct BatchOutput: Sendable {
    /// Where to.
    enum Target: Sendable {
        /// NDJSON into a file; nil is standard output.
        case lines(String?)
        /// Images into a folder.
        case files(String)

        /// Looks whether it can be written, and makes the folder.
        /// - Throws: `cacheUnavailable` (73).
        func check() throws(PrefetchError) {
            switch self {
            case .lines(let path?): try OutputFile.check(path)
            case .lines: return
            case .files(let path): _ = try ImageFolder(path: path)
            }
        }
    }

    let queue: PrefetchQueue
    /// The cache folder.
    let cache: String
    /// Where the list is now, if not where it was read.
    var listPath: String?

    /// Writes the newest results of the chain that a batch belongs to.
    /// - Throws: `notFound`, `unreadableList`, `cacheUnavailable`, `inputOutput`, `redisUnavailable`, `stopped`.
    func write(_ id: String, to target: Target) async throws(PrefetchError) {
        let disk = try Self.openCache(cache)
        let chain = try await BatchChain.read(id, queue: queue)
        let export = try await BatchExport(chain, queue: queue, cache: disk, listPath: listPath)
        switch target {
        case .lines(let path): try await writeLines(export, to: path)
        case .files(let path): try await fill(path, export)
        }
        if chain.open > 0, !Console.isOutputClosed {
            Console.note("note: \(Wording.count(chain.open)) URLs of \(chain.newest.id) have no outcome yet")
        }
    }

    /// The cache folder, only for reading; 66 where there is none.
    static func openCache(_ folder: String) throws(PrefetchError) -> DiskCache {
        guard access(folder, F_OK) == 0 else {
            throw PrefetchError(.notFound, "there is no folder \(folder)", hint: "name the cache: --cache DIR")
        }
        var configuration = DiskCache.Configuration()
        configuration.isReadOnly = true
        do throws(WebImageError) {
            return try DiskCache(directory: folder, configuration: configuration)
        } catch {
            throw PrefetchError(
                .cacheUnavailable, error.message, hint: "name a cache that this user may read: --cache DIR")
        }
    }

    private func writeLines(_ export: BatchExport, to path: String?) async throws(PrefetchError) {
        let file = if let path { try OutputFile(path: path) } else { nil as OutputFile? }
        let written = Locked((lines: 0, images: 0))
        try await export.forEachGroup { lines throws(PrefetchError) in
            var text = ""
            for line in lines {
                text += BatchJSON.line(line).text
                text += "\n"
            }
            if let file { try file.write(Array(text.utf8)) } else { Console.print(Array(text.utf8)) }
            written.withLock { written in
                written.lines += lines.count
                written.images += lines.count { $0.image != nil }
            }
            return file != nil || (!Console.isOutputClosed && Console.outputError == nil)
        }
        guard let file else { return }
        try file.commit()
        let (lines, images) = written.withLock { $0 }
        Console.note(
            "\(TerminalText.escaped(file.path)): \(Wording.count(lines)) lines, \(Wording.count(images)) with an image")
    }

    private func fill(_ path: String, _ export: BatchExport) async throws(PrefetchError) {
        let folder = try ImageFolder(path: path) { reason in
            Console.note(
                "note: \(TerminalText.escaped(reason)): what cannot be linked is copied, and takes room of its own")
        }
        try await export.fill(folder)
        let tally = folder.tally
        let (new, all) = (tally.linked + tally.copied, tally.linked + tally.copied + tally.present)
        var text = "\(TerminalText.escaped(path)): \(Wording.count(all)) images, \(Wording.count(new)) of them new"
        if tally.without > 0 { text += "; \(Wording.count(tally.without)) lines have none" }
        if tally.missing > 0 {
            text += "; \(Wording.count(tally.missing)) are not in the cache any more, run the list again to fetch them"
        }
        Console.note(text)
    }
}
