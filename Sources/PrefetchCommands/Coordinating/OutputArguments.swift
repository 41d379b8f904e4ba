internal import ArgumentParser
internal import Prefetch

/// What shards are like.
struct ShardArguments: SettingRecord, SettingGroup {
    var perShard: Int?
    var captionColumn: String?
    var imageMember: String?
    var sidecar: ShardOptions.Sidecar?
    var addColumns: [ShardOptions.Added]?

    static let settings: [Setting<ShardArguments>] = [
        Setting("--per-shard", \.perShard, .count(1...10_000_000), "Lines of a shard. (default: 10000)"),
        Setting(
            "--caption-column", \.captionColumn,
            .text("name", rule: "needs the name of a column") { !$0.isEmpty },
            "Column of captions. (default: caption, text or alt)"),
        Setting(
            "--image-member", \.imageMember, .text("name"),
            "Name of the images in shards; ext: each by its format. (default: jpg, or the --image-format)"),
        Setting(
            "--sidecar", \.sidecar, .choice("format"),
            "Table of a webdataset shard: parquet or jsonl. (default: parquet, if duckdb or pyarrow is there)"),
        Setting(
            "--add-columns", \.addColumns, .list("list", added) { $0.map(\.rawValue) },
            "Columns made of the images: image_phash, a 64-bit pHash; duplicate_of, and each image once in a shard."),
    ]

    /// Columns in their order, whatever that of the names is.
    private static func added(_ names: [String]) throws(WebImageError) -> [ShardOptions.Added] {
        let known = ShardOptions.Added.allCases.map(\.rawValue)
        for name in names where !known.contains(where: { $0.utf8.elementsEqual(name.utf8) }) {
            throw WebImageError(
                .invalidConfiguration,
                "there is no column '\(name)' to add, but \(known.joined(separator: " and "))"
                    + EditDistance.guess(name, among: known))
        }
        guard !names.isEmpty else {
            throw WebImageError(.invalidConfiguration, "needs \(known.joined(separator: " or "))")
        }
        return ShardOptions.Added.allCases.filter { column in names.contains { column.rawValue == $0 } }
    }

    /// * `form`: nil of a format without shards; `offered`: those that the command has.
    /// - Throws: `ValidationError` if the options do not go with it.
    func check(_ form: ShardOptions.Form?, of offered: [ShardOptions.Form]) throws {
        for (option, isGiven, forms) in [
            ("--per-shard", perShard != nil, [.webDataset, .parquet, .tables]),
            ("--caption-column", captionColumn != nil, [.webDataset, .parquet, .tables]),
            ("--image-member", imageMember != nil, [.webDataset, .parquet]),
            ("--sidecar", sidecar != nil, [.webDataset]),
            ("--add-columns", addColumns != nil, [.webDataset, .parquet, .tables]),
        ] as [(String, Bool, [ShardOptions.Form])] where isGiven && !forms.contains(where: { $0 == form }) {
            let names = forms.filter(offered.contains).map(\.rawValue)
            throw ValidationError("\(option) goes with --format \(names.joined(separator: " or "))")
        }
    }

    func options(_ form: ShardOptions.Form) throws -> ShardOptions {
        var options = ShardOptions(form)
        if let perShard { options.perShard = perShard }
        if let imageMember {
            guard ShardOptions.isMember(imageMember), form == .webDataset || imageMember != ShardOptions.ownMember
            else {
                throw ValidationError(
                    "--image-member is a name of small ASCII letters and digits, such as jpg, but not json or txt"
                        + (form == .webDataset ? "; or ext" : ""))
            }
        }
        (options.captionColumn, options.imageMember, options.sidecar) = (captionColumn, imageMember, sidecar)
        options.added = addColumns ?? []
        return options
    }
}

/// What `run` and `retry` write at the end of the batch, and shards before it.
struct OutputArguments: SettingRecord, SettingGroup {
    /// What a folder of images looks like.
    enum Format: String, CaseIterable, Sendable {
        case files, tree, webdataset, parquet
    }

    var manifest: String?
    var overwrite = false
    var out: String?
    var format: Format?

    static let settings: [Setting<OutputArguments>] = [
        Setting(
            "--manifest", \.manifest, .text("file"), is: .file,
            "Write the result of each line to this file, as export --format jsonl."),
        Setting("--overwrite", \.overwrite, .flag, "Replace any file that is not one of the lists."),
        Setting(
            "--out", \.out, .folder,
            "Folder for images, or s3://BUCKET/PREFIX for shards."),
        Setting(
            "--format", \.format, .choice("format"),
            "Layout of --out, as of export --format: files, tree, webdataset or parquet. (default: files)"),
    ]

    /// - Throws: `ValidationError` if what `--out` names is a bucket, and no shards go there, or if it is none.
    static func check(_ out: String, isOfShards: Bool) throws {
        guard ShardAddress.isBucket(out) else {
            if out.contains("://") { throw ValidationError("--out is a folder, or s3://BUCKET/PREFIX: not \(out)") }
            return
        }
        guard isOfShards else {
            throw ValidationError("a bucket takes shards alone: --format webdataset or --format parquet")
        }
        do throws(PrefetchError) { try ShardAddress.check(out) } catch {
            throw ValidationError("\(error.message): \(error.hint)")
        }
    }

    /// - Throws: `ValidationError` if what is to be a file is an address of a bucket.
    static func checkFile(_ path: String, _ option: String) throws {
        guard ShardAddress.isBucket(path) else { return }
        throw ValidationError("\(option) is a file; copy it into the bucket afterwards: aws s3 cp")
    }

    /// - Throws: `ValidationError` if the options do not go together.
    func targets(_ shards: ShardArguments) throws -> [BatchOutput.Target] {
        if manifest == "" || manifest == "-" {
            throw ValidationError("--manifest needs a file; for standard output: prefetch-coord export --format jsonl")
        }
        if overwrite && manifest == nil { throw ValidationError("--overwrite goes with --manifest FILE") }
        if format != nil && out == nil { throw ValidationError("--format goes with --out DIR") }
        if let manifest { try Self.checkFile(manifest, "--manifest") }
        if let out { try Self.check(out, isOfShards: format == .webdataset || format == .parquet) }
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
