public import ArgumentParser
internal import Prefetch
public import WebImage

/// `prefetch-coord export`: what became of each line, and its image.
struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write a manifest of a batch, or its images under readable names.",
        usage: "prefetch-coord export [<batch>] --to <form> [<folder>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord export --to jsonl --cache ./cache | jq -r .path
              prefetch-coord export urls-7f3a --to files ./images
              prefetch-coord export --to lock > prefetch.lock
              prefetch-coord export --to webdataset ./shards --per-shard 1000
              prefetch-coord export --to jsonl --merge img-02.jsonl -o all.jsonl

            jsonl: one JSON object per line of the list, in its order: line, url, outcome,
            path, bytes, sha256, format, width, height, orientation, frames, alpha, color_space; null if there is none.

            csv, tsv: the same as a table with a header; columns of --keep-columns follow.

            failed: the skipped URLs, a list to run again.

            lock: URL, SHA-256, bytes and dimensions of each image, for run --locked.

            files: 000001.jpg, 000002.png and so on by line number: hard links, or copies
            on another file system. Existing files are never overwritten. A list of more
            than 10,000 URLs gets folders of 10,000 lines: 00000/000001.jpg.

            tree: the same, named after the URLs: https/example.org/a/b.jpg.

            sdwebimage: copies laid out as SDWebImage's cache, and the code that makes an
            app read them.

            webdataset: tar archives of images, JSON and captions; the same images give the
            same bytes.

            A file that exists is replaced if it is a manifest of the same batch, otherwise
            with --overwrite; the list never is.

            After a retry each line has its newest result. If machines have caches of their
            own, a line without an image here names the host that has it, and --merge takes
            its path from that machine's manifest.
            """)

    @Argument(help: "Batch, or the beginning of its name. (default: the newest)")
    var batch: String?

    @Option(
        parsing: .upToNextOption,
        help: .value("form", "jsonl, csv, tsv, failed or lock; files, tree, sdwebimage or webdataset and a folder."),
        completion: .file())
    var to: [String]

    @Option(
        name: .shortAndLong, help: .file("File to write a text to. (default: standard output)"), completion: .file())
    var output: String?

    @OptionGroup var replacing: ReplacingOptions

    @Option(help: .value("version", "SDWebImage version of the layout: v3, v4 or v5. (default: v5)"))
    var layout: SDWebImageFileName.Layout?

    @Option(help: .count("Images per webdataset archive. (default: 10000)"))
    var perShard: Int?

    @Option(
        help: .name("Kept column with the captions for webdataset. (default: caption, text or alt, if kept)"))
    var captionColumn: String?

    @Option(
        help: ArgumentHelp(
            "Manifest (jsonl) of the same batch from another machine; fills in the lines without an image here. Repeatable.",
            valueName: "file"), completion: .file())
    var merge: [String] = []

    @Option(help: .file("The list of the batch, if it has been moved."), completion: .file())
    var list: String?

    @OptionGroup(title: "Output") var secrets: SecretOptions
    @OptionGroup(title: "Redis") var location: RedisLocation
    @OptionGroup(title: "Redis") var readOnly: ReadOnlyCacheOptions

    func validate() throws { _ = try words() }

    func run() async throws {
        let (target, name) = try words()
        guard let cache = location.cacheFolder, !cache.isEmpty else {
            throw PrefetchError(
                .configuration, "export needs the cache with the images", hint: "name the cache: --cache DIR")
        }
        let list = try GivenList.repeatable(list)
        try await Session.with(location) { session in
            let id = try await session.queue.catalog.resolve(name)
            let output = BatchOutput(
                queue: session.queue, cache: cache, readOnly: readOnly.directories, listPath: list, merged: merge)
            try await output.check(id, target, overwrites: replacing.overwrite)
            try await output.write(id, to: target)
        }
    }

    /// Takes the words behind `--to` apart: a batch may stand there as well as in front.
    private func words() throws -> (BatchOutput.Target, batch: String?) {
        var rest = to.dropFirst()
        let kind = to.first ?? ""
        if output == "" { throw ValidationError("--output needs a file") }
        if replacing.overwrite, output == nil || output == "-" {
            throw ValidationError("--overwrite goes with --output FILE; no file of a folder is replaced")
        }
        if layout != nil && kind != "sdwebimage" { throw ValidationError("--layout is of --to sdwebimage") }
        if perShard != nil && kind != "webdataset" { throw ValidationError("--per-shard is of --to webdataset") }
        if captionColumn != nil && kind != "webdataset" {
            throw ValidationError("--caption-column is of --to webdataset")
        }
        if let perShard, !(1...10_000_000).contains(perShard) {
            throw ValidationError("--per-shard is a number from 1 to 10000000")
        }
        guard merge.isEmpty || ["jsonl", "csv", "tsv"].contains(kind) else {
            throw ValidationError("--merge is of --to jsonl, csv and tsv")
        }
        let target: BatchOutput.Target
        if let text = BatchOutput.Text(rawValue: kind) {
            target = .text(text, output == "-" ? nil : output)
        } else {
            guard ["files", "tree", "sdwebimage", "webdataset"].contains(kind) else {
                throw ValidationError(
                    "--to is jsonl, csv, tsv, failed or lock, or files, tree, sdwebimage or webdataset and a folder, not '\(kind)'"
                )
            }
            guard let folder = rest.popFirst(), !folder.isEmpty else {
                throw ValidationError("--to \(kind) needs a folder: --to \(kind) DIR")
            }
            guard output == nil else {
                throw ValidationError("--output is for texts; the folder follows --to \(kind)")
            }
            target =
                switch kind {
                case "tree": .tree(folder)
                case "sdwebimage": .sdWebImage(folder, layout ?? .v5)
                case "webdataset":
                    .webDataset(
                        folder, perShard: perShard ?? BatchOutput.usualPerShard, caption: captionColumn)
                default: .files(folder)
                }
        }
        let name = rest.popFirst()
        guard rest.isEmpty, name == nil || batch == nil else {
            let names = [batch, name].compactMap { $0 } + rest
            throw ValidationError("export takes one batch, not \(names.joined(separator: ", "))")
        }
        return (target, batch ?? name)
    }
}

extension SDWebImageFileName.Layout: ExpressibleByArgument {}
