public import ArgumentParser
internal import Prefetch
public import WebImage

/// `prefetch-coord export`: what became of each line, and its image.
struct ExportCommand: AsyncParsableCommand {
    /// What is written: a text of a line for each line of the list, a page, or a folder of images.
    enum Format: String, CaseIterable, ExpressibleByArgument {
        case jsonl, csv, tsv, failed, lock, html, files, tree, sdwebimage, webdataset, parquet
        case tables = "parquet-metadata"

        /// Nil of folders and the page.
        var text: BatchOutput.Text? { BatchOutput.Text(rawValue: rawValue) }

        var isFolder: Bool { text == nil && self != .html }

        var shards: ShardOptions.Form? { ShardOptions.Form(rawValue: rawValue) }
    }

    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write a manifest or a report of a batch, or its images under readable names.",
        usage: "prefetch-coord export [<batch>] --format <format> [<options>]",
        discussion: """
            Examples:
              prefetch-coord export --format jsonl --cache ./cache | jq -r .path
              prefetch-coord export urls-7f3a --format files --out ./images
              prefetch-coord export --format lock > prefetch.lock
              prefetch-coord export --format html -o report.html
              prefetch-coord export --format webdataset --out ./shards --per-shard 1000
              prefetch-coord export --format jsonl --merge img-02.jsonl -o all.jsonl

            jsonl: one JSON object per line of the list, in its order: line, url, outcome,
            path, bytes, sha256, format, width, height, orientation, frames, alpha, color_space; null if there is none.

            csv, tsv: the same as a table with a header; columns of --keep-columns follow.

            failed: the skipped URLs, a list to run again.

            lock: URL, SHA-256, bytes and dimensions of each image, a list whose bytes run checks.

            html: one page with outcomes, causes, hosts, workers and the first skipped lines;
            no scripts, no external resources, light and dark, printable.

            files: 000001.jpg, 000002.png and so on by line number: hard links, or copies
            on another file system. Existing files are never overwritten. A list of more
            than 10,000 URLs gets folders of 10,000 lines: 00000/000001.jpg.

            tree: the same, named after the URLs: https/example.org/a/b.jpg.

            sdwebimage: copies laid out as SDWebImage's cache, and the code that makes an
            app read them.

            webdataset: shards as img2dataset writes them: 00000.tar with images, JSON and
            captions, 00000.parquet and 00000_stats.json. The same images give the same bytes.

            parquet: the same as 00000.parquet with the images in a column; no archives.

            parquet-metadata: the tables alone, to put beside archives.

            A file that exists is replaced if it is of the same batch, otherwise with
            --overwrite; the list never is.

            After a retry each line has its newest result. If machines have caches of their
            own, a line without an image here names the host that has it, and --merge takes
            its path from that machine's manifest.
            """)

    @Argument(help: "Batch, or the beginning of its name. (default: the newest)", completion: .batch)
    var batch: String?

    @Option(
        help: .value(
            "format",
            "jsonl, csv, tsv, failed, lock or html, a text; files, tree, sdwebimage, webdataset, parquet or parquet-metadata, a folder."
        )
    )
    var format: Format?

    @Option(help: .folder("Folder for images, or s3://BUCKET/PREFIX for shards."), completion: .directory)
    var out: String?

    @Option(
        name: .shortAndLong, help: .file("File to write a text to. (default: standard output)"), completion: .file())
    var output: String?

    @Flag(help: "Replace any file that is not one of the lists.")
    var overwrite = false

    @Option(
        name: .customLong("sdwebimage-version"),
        help: .value("version", "SDWebImage version of the layout: v3, v4 or v5. (default: v5)"))
    var layout: SDWebImageFileName.Layout?

    @OptionGroup(title: "Shards") var shards: SettingOptions<ShardArguments>

    @Option(
        help: ArgumentHelp(
            "Manifest (jsonl) of the same batch from another machine; fills in the lines without an image here. Repeatable.",
            valueName: "file"), completion: .file())
    var merge: [String] = []

    @OptionGroup(title: "Output") var secrets: SecretOptions
    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>
    @OptionGroup(title: "Redis") var readOnly: SettingOptions<LowerCaches>

    func validate() throws {
        // Said by ``run()``: an option of another tool is answered first.
        guard let format else { return }
        if output == "" { throw ValidationError("--output needs a file") }
        if overwrite, output == nil || output == "-" {
            throw ValidationError("--overwrite goes with --output FILE; no file of a folder is replaced")
        }
        for (option, isGiven, formats) in [
            ("--sdwebimage-version", layout != nil, [.sdwebimage]), ("--merge", !merge.isEmpty, [.jsonl, .csv, .tsv]),
        ] as [(String, Bool, [Format])] where isGiven && !formats.contains(format) {
            throw ValidationError(
                "\(option) is of --format \(formats.map(\.rawValue).joined(separator: ", "))")
        }
        try shards.record.check(format.shards, of: ShardOptions.Form.allCases)
        if let form = format.shards { _ = try shards.record.options(form) }
        if let output { try OutputArguments.checkFile(output, "--output") }
        guard format.isFolder else {
            if out != nil { throw ValidationError("--format \(format.rawValue) is a text: -o FILE, not --out") }
            return
        }
        if out?.isEmpty != false { throw ValidationError("--format \(format.rawValue) needs a folder: --out DIR") }
        if output != nil { throw ValidationError("--output is for texts; --out names the folder") }
        if let out { try OutputArguments.check(out, isOfShards: format.shards != nil) }
    }

    func run() async throws {
        guard let format else {
            throw ValidationError("--format says what is written: \(Format.allValueStrings.joined(separator: ", "))")
        }
        let path = output == "-" ? nil : output
        if format == .html {
            try BatchReport.check(path)
        } else if location.cacheFolder?.isEmpty != false {
            throw PrefetchError(
                .configuration, "export needs the cache with the images", hint: "name the cache: --cache DIR")
        }
        try await Session.with(location.record) { session in
            let id = try await MeantBatch.resolve(
                batch,
                "export --format \(format.rawValue)" + (out.map { " --out \(BatchOutput.Target.quoted($0))" } ?? ""),
                location.words, in: session.queue)
            guard format != .html else {
                let report = BatchReport(queue: session.queue, id: id)
                return try await report.write(to: path, overwrites: overwrite)
            }
            let output = BatchOutput(
                queue: session.queue, cache: .folder(location.cacheFolder ?? ""),
                readOnly: readOnly.record.readOnlyCaches,
                merged: merge)
            let target = try target(format, path)
            try await output.check(id, target, overwrites: overwrite)
            try await output.write(id, to: target)
        }
    }

    private func target(_ format: Format, _ path: String?) throws -> BatchOutput.Target {
        if let text = format.text { return .text(text, path) }
        let folder = out ?? ""
        if let form = format.shards { return .shards(folder, try shards.record.options(form)) }
        return switch format {
        case .tree: .tree(folder)
        case .sdwebimage: .sdWebImage(folder, layout ?? .v5)
        default: .files(folder)
        }
    }
}

extension SDWebImageFileName.Layout: ExpressibleByArgument {}
