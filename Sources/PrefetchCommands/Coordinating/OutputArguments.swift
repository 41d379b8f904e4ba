internal import ArgumentParser
internal import Prefetch

/// Whether a file of results replaces another file.
struct ReplacingOptions: ParsableArguments {
    @Flag(help: "Replace any file that is not one of the lists.")
    var overwrite = false
}

/// What shards are like.
struct ShardArguments: ParsableArguments {
    @Option(help: .count("Lines of a shard. (default: 10000)"))
    var perShard: Int?

    @Option(help: .name("Column of captions. (default: caption, text or alt)"))
    var captionColumn: String?

    @Option(
        help: .name(
            "Name of the images in shards; ext: each by its format. (default: jpg, or the --image-format)"
        ))
    var imageMember: String?

    @Option(
        help: .value(
            "format",
            "Table of a webdataset shard: parquet or jsonl. (default: parquet, if duckdb or pyarrow is there)"))
    var sidecar: ShardOptions.Sidecar?

    /// * `form`: nil of a format that is no shards; `offered`: those that the command has.
    /// - Throws: `ValidationError` if the options do not go with it.
    func check(_ form: ShardOptions.Form?, of offered: [ShardOptions.Form]) throws {
        for (option, isGiven, forms) in [
            ("--per-shard", perShard != nil, [.webDataset, .parquet, .tables]),
            ("--caption-column", captionColumn != nil, [.webDataset, .parquet, .tables]),
            ("--image-member", imageMember != nil, [.webDataset, .parquet]),
            ("--sidecar", sidecar != nil, [.webDataset]),
        ] as [(String, Bool, [ShardOptions.Form])] where isGiven && !forms.contains(where: { $0 == form }) {
            let names = forms.filter(offered.contains).map(\.rawValue)
            throw ValidationError("\(option) goes with --format \(names.joined(separator: " or "))")
        }
    }

    func options(_ form: ShardOptions.Form) throws -> ShardOptions {
        var options = ShardOptions(form)
        if let perShard {
            guard (1...10_000_000).contains(perShard) else {
                throw ValidationError("--per-shard is a number from 1 to 10000000")
            }
            options.perShard = perShard
        }
        if captionColumn == "" { throw ValidationError("--caption-column needs the name of a column") }
        if let imageMember {
            guard ShardOptions.isMember(imageMember), form == .webDataset || imageMember != ShardOptions.ownMember
            else {
                throw ValidationError(
                    "--image-member is a name of small ASCII letters and digits, such as jpg, but not json or txt"
                        + (form == .webDataset ? "; or ext" : ""))
            }
        }
        (options.captionColumn, options.imageMember, options.sidecar) = (captionColumn, imageMember, sidecar)
        return options
    }
}

extension ShardOptions.Sidecar: ExpressibleByArgument {}

/// What `run` and `retry` write at the end of the batch, and shards before it.
struct OutputArguments: ParsableArguments {
    /// What a folder of images looks like.
    enum Format: String, CaseIterable, ExpressibleByArgument {
        case files, tree, webdataset, parquet
    }

    @Option(help: .file("Write the result of each line to this file, as export --format jsonl."), completion: .file())
    var manifest: String?

    @OptionGroup var replacing: ReplacingOptions

    @Option(
        help: .folder("Write the images to this folder at the end; of a run, each shard once it is complete."),
        completion: .directory)
    var out: String?

    @Option(
        help: .value(
            "format", "Layout of --out, as of export --format: files, tree, webdataset or parquet. (default: files)"))
    var format: Format?

    @OptionGroup(title: "Shards") var shards: ShardArguments

    func validate() throws { _ = try targets() }

    /// - Throws: `ValidationError` if the options do not go together.
    func targets() throws -> [BatchOutput.Target] {
        if manifest == "" || manifest == "-" {
            throw ValidationError("--manifest needs a file; for standard output: prefetch-coord export --format jsonl")
        }
        if replacing.overwrite && manifest == nil { throw ValidationError("--overwrite goes with --manifest FILE") }
        if out == "" { throw ValidationError("--out needs a folder") }
        if format != nil && out == nil { throw ValidationError("--format goes with --out DIR") }
        let folder: BatchOutput.Target? = try out.map { out in
            switch format ?? .files {
            case .files: .files(out)
            case .tree: .tree(out)
            case .webdataset: .shards(out, try shards.options(.webDataset))
            case .parquet: .shards(out, try shards.options(.parquet))
            }
        }
        try shards.check(format.flatMap { ShardOptions.Form(rawValue: $0.rawValue) }, of: [.webDataset, .parquet])
        return [manifest.map { .lines($0) }, folder].compactMap { $0 }
    }
}
