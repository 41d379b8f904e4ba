internal import ArgumentParser
internal import Origin
internal import Prefetch
internal import PrefetchCommands
internal import WebImage

/// `prefetch-origin generate`: writes a corpus to disk.
struct GenerateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "generate",
        abstract: "Write a reproducible corpus of images.",
        usage: "prefetch-origin generate <dir> [<options>]",
        discussion: """
            Examples:
              prefetch-origin generate ./corpus --count 5000 --seed 1
              prefetch-origin generate ./small --count 200 --median 9500

            70 % baseline JPEG, 10 % progressive, 15 % PNG, 5 % GIF and WebP; sizes are
            log-normal, the 95th percentile is 6.9 medians. DIR/manifest.tsv has path,
            kind, bytes and SHA-256 of each, in order.
            """)

    @Argument(
        help: ArgumentHelp("Folder to make; it may exist if it is empty.", valueName: "dir"), completion: .directory)
    var folder: String

    @Option(help: .count("Number of images."))
    var count = 5000

    @Option(help: .count("Seed of the random content."))
    var seed: UInt64 = 1

    @Option(help: .value("bytes", "Approximate median size of the images."))
    var median = 27_000

    func validate() throws {
        guard (1...1_000_000).contains(count) else { throw ValidationError("--count is a number from 1 to 1000000") }
        guard (1_000...1_000_000).contains(median) else {
            throw ValidationError("--median is a number from 1000 to 1000000")
        }
    }

    func run() async throws {
        let summary: Corpus.Summary
        do throws(OriginError) {
            summary = try await Corpus(count: count, seed: seed, median: median).write(
                to: folder, threads: Processors.count, digest: { SHA256.hash($0).hex })
        } catch {
            throw PrefetchError(error, hint: "name a folder that is missing or empty and that this user may write")
        }
        Console.print(
            "\(Wording.count(count)) images, \(Wording.count(summary.bytes)) bytes, seed \(seed): median "
                + "\(Wording.count(summary.median)), 95th percentile \(Wording.count(summary.percentile95)), mean "
                + Wording.count(summary.bytes / count))
    }
}
