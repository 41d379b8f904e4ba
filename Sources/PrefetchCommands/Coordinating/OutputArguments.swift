internal import ArgumentParser

/// Whether a file of results replaces another file.
struct ReplacingOptions: ParsableArguments {
    @Flag(help: "Replace any file that is not one of the lists.")
    var overwrite = false
}

/// What `run` and `retry` write at the end of the batch.
struct OutputArguments: ParsableArguments {
    /// What a folder of images looks like.
    enum Format: String, CaseIterable, ExpressibleByArgument {
        case files, tree, webdataset
    }

    @Option(help: .file("Write the result of each line to this file, as export --format jsonl."), completion: .file())
    var manifest: String?

    @OptionGroup var replacing: ReplacingOptions

    @Option(help: .folder("Write the images to this folder at the end."), completion: .directory)
    var out: String?

    @Option(
        help: .value(
            "format", "Layout of --out, as of export --format: files, tree or webdataset. (default: files)"))
    var format: Format?

    @Option(
        help: .name("Column with the captions for --format webdataset. (default: caption, text or alt, if kept)"))
    var captionColumn: String?

    func validate() throws { _ = try targets() }

    /// - Throws: `ValidationError` if the options do not go together.
    func targets() throws -> [BatchOutput.Target] {
        if manifest == "" || manifest == "-" {
            throw ValidationError("--manifest needs a file; for standard output: prefetch-coord export --format jsonl")
        }
        if replacing.overwrite && manifest == nil { throw ValidationError("--overwrite goes with --manifest FILE") }
        if out == "" { throw ValidationError("--out needs a folder") }
        if format != nil && out == nil { throw ValidationError("--format goes with --out DIR") }
        if captionColumn != nil && format != .webdataset {
            throw ValidationError("--caption-column goes with --format webdataset")
        }
        if captionColumn == "" { throw ValidationError("--caption-column needs the name of a column") }
        let folder: BatchOutput.Target? = out.map { out in
            switch format ?? .files {
            case .files: .files(out)
            case .tree: .tree(out)
            case .webdataset: .webDataset(out, perShard: BatchOutput.usualPerShard, caption: captionColumn)
            }
        }
        return [manifest.map { .lines($0) }, folder].compactMap { $0 }
    }
}
