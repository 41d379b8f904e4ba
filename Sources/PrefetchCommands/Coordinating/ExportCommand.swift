internal import ArgumentParser
internal import Prefetch

/// `prefetch-coord export`: what became of each line, and its image.
struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write a manifest of a batch, or put its images into a folder.",
        usage: """
            prefetch-coord export [<batch>] --to jsonl [--output <file>] [<options>]
            prefetch-coord export [<batch>] --to files <folder> [<options>]
            """,
        discussion: """
            Examples:
              prefetch-coord export --to jsonl --cache ./cache | jq -r .path
              prefetch-coord export urls-7f3a --to files ./images

            jsonl: an object a line, in the order of the list, with line, url, outcome,
            path, bytes, sha256, format, width and height; null where there is none.
            files: hard links 000001.jpg, 000002.png … by line number and verified format;
            copies where links cannot be. Nothing that is there is overwritten.
            Of a batch that was retried, each line has its newest result.
            """)

    @Argument(help: "A batch, or the beginning of its name; the newest by default.")
    var batch: String?

    @Option(parsing: .upToNextOption, help: "jsonl, or files and a folder.")
    var to: [String]

    @Option(name: .shortAndLong, help: "The file of jsonl; standard output by default.")
    var output: String?

    @Option(help: "The list the batch was submitted from, where it is elsewhere now.")
    var list: String?

    @OptionGroup(title: "Where") var location: RedisLocation

    func validate() throws { _ = try words() }

    func run() async throws {
        let (target, name) = try words()
        guard let cache = location.cacheFolder, !cache.isEmpty else {
            throw PrefetchError(
                .configuration, "export wants to know where the images are", hint: "name the cache: --cache DIR")
        }
        try await Session.with(location) { session in
            let id = try await session.queue.resolve(name)
            try await BatchOutput(queue: session.queue, cache: cache, listPath: list).write(id, to: target)
        }
    }

    /// Takes the words behind `--to` apart: a batch may stand there as well as in front.
    private func words() throws -> (BatchOutput.Target, batch: String?) {
        var rest = to.dropFirst()
        let target: BatchOutput.Target
        switch to.first {
        case "jsonl": target = .lines(output == "-" ? nil : output)
        case "files":
            guard let folder = rest.popFirst(), !folder.isEmpty else {
                throw ValidationError("--to files wants a folder: --to files DIR")
            }
            guard output == nil else {
                throw ValidationError("--output is the file of --to jsonl; the folder stands behind --to files")
            }
            target = .files(folder)
        default: throw ValidationError("--to is jsonl, or files and a folder, not '\(to.first ?? "")'")
        }
        if output == "" { throw ValidationError("--output wants a file") }
        let name = rest.popFirst()
        guard rest.isEmpty, name == nil || batch == nil else {
            let names = [batch, name].compactMap { $0 } + rest
            throw ValidationError("export takes one batch, not \(names.joined(separator: ", "))")
        }
        return (target, batch ?? name)
    }
}
