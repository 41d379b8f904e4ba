import ArgumentParser
import PrefetchModel
import TestSupport
import Testing

@testable import PrefetchCommands
@testable import prefetch_coord

@Suite("Help and errors of the command line")
struct HelpTests {
    /// Every command of the programs, groups included.
    private static let paths: [CommandPath] = {
        func below(
            _ command: any ParsableCommand.Type, _ root: any ParsableCommand.Type, _ words: [String]
        ) -> [CommandPath] {
            [CommandPath(words, of: root)]
                + command.configuration.subcommands.flatMap { below($0, root, words + [$0._commandName]) }
        }
        return below(CoordCommand.self, CoordCommand.self, []) + below(WorkerCommand.self, WorkerCommand.self, [])
    }()

    /// The arguments of each.
    private static let options = paths.map(\.options)

    @Test(
        "-h has at most 120 lines, both pages 80 columns, --help has every option, and both are those that are kept",
        arguments: paths.indices)
    func pages(_ index: Int) throws {
        let path = Self.paths[index]
        let short = HelpPage(path, .short, width: 80).text
        let full = HelpPage(path, .full, width: 80).text
        #expect(short.split(separator: "\n", omittingEmptySubsequences: false).count <= 120, "\(path.text)")
        for line in (short + "\n" + full).split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
        for option in Self.options[index] where option.shouldDisplay {
            for name in option.names { #expect(full.contains("\(name)"), "\(path.text) \(name)") }
            // An option without a text says nothing.
            #expect(option.abstract?.isEmpty == false, "\(path.text) \(option.names)")
        }
        if path.words.count > 1 || path.command == WorkerCommand.self {
            #expect(full.contains("Example"), "\(path.text)")
        }
        let name = path.text.replacing(" ", with: "-")
        try Golden.expect(short, is: "help/\(name)-h")
        try Golden.expect(full, is: "help/\(name)--help")
    }

    @Test("The options of the command come before those it shares")
    func order() throws {
        let page = HelpPage(CommandPath(["run"], of: CoordCommand.self), .full, width: 80).text
        let titles = ["Arguments:", "Options:", "List:", "Requests:", "Verification:", "Batch:", "Network:", "Output:"]
        let places = try titles.map { try #require(page.firstRange(of: "\n\($0)\n")).lowerBound }
        #expect(places == places.sorted())
        #expect(
            HelpPage(CommandPath([], of: CoordCommand.self), .short, width: 80).text.contains("\nQueue:\n  submit "))
    }

    /// Words, and the two lines they get.
    private static let errors: [(words: [String], message: String, hint: String)] = [
        (["run"], "<file> ... is missing", "usage: prefetch-coord run <file> ... [<options>]"),
        (
            ["run", "x", "--nothing-like-it"], "unknown option --nothing-like-it",
            "prefetch-coord run -h lists the options"
        ),
        (["run", "x", "--max-sise", "3"], "unknown option --max-sise", "did you mean --max-size?"),
        (
            ["run", "x", "--rate", "3"], "unknown option --rate",
            "--rate-per-host N: requests per second to one host, over all workers: 20 or 0.5"
        ),
        (
            ["run", "x", "-j", "4"], "unknown option -j",
            "--max-concurrent-downloads N: transfers a worker runs at once, 1 to 4096; auto: it finds the number"
        ),
        (["run", "x", "-k"], "unknown option -k", "--allow-invalid-ssl: accept invalid TLS certificates (INSECURE)"),
        (
            ["run", "x", "--image_size", "256"], "unknown option --image_size",
            "--resize WXH: resize images to this size: 256x192, or 256 for 256x256. Smaller ones stay"
        ),
        (
            ["submit", "x", "--cacert", "f"], "unknown option --cacert",
            "--ca-file FILE: certificate authorities to trust (PEM) (an option of prefetch-coord run)"
        ),
        (
            ["submit", "x", "--max-concurrent-downloads", "4"], "unknown option --max-concurrent-downloads",
            "--max-concurrent-downloads is an option of prefetch-coord run"
        ),
        (["run", "x", "--jos", "3"], "unknown option --jos", "prefetch-coord run -h lists the options"),
        (
            ["run", "x", "--timeout", "abc"], "'abc' is not a valid value of --timeout <time>",
            "a time is a number with ms, s, m, h, d or w: 500ms, 10s, 2h; seconds without a unit"
        ),
        (
            ["run", "x", "--max-size", "1e3"], "'1e3' is not a valid value of --max-size <size>",
            "a size is a number of bytes with K, M, G, KiB, MiB, MB, ...: 500k, 64MiB, 2.5MB"
        ),
        (
            ["run", "x", "--progress", "much"], "'much' is not a valid value of --progress <mode>",
            "one of auto, tty, plain, json, none"
        ),
        (["run", "x", "--cache"], "--cache <dir> needs a value", "prefetch-coord run -h lists the options"),
        (["run", "x", "--key"], "--key <file> needs a value", "prefetch-coord run --help lists the options"),
        (["run", "x", "--proxy", "--http2"], "--proxy <url> needs a value", "prefetch-coord run -h lists the options"),
        (
            ["run", "x", "--http2=yes"], "the option '--http2' does not take any value, but 'yes' was specified.",
            "prefetch-coord run --help lists the options"
        ),
        (
            ["run", "x", "--max-per-host", "-3"], "--max-per-host is a number of at least 0, not '-3'",
            "prefetch-coord run -h lists the options"
        ),
        (["run", "x", "-n", "-3"], "--workers is a number from 1 to 256", "prefetch-coord run -h lists the options"),
        (["run", "x", "-n", "0"], "--workers is a number from 1 to 256", "prefetch-coord run -h lists the options"),
        (
            ["run", "x", "-q", "-v"], "--quiet and --verbose contradict each other",
            "prefetch-coord run -h lists the options"
        ),
        (
            ["run", "x", "--cache-max-age", "7"], "'7' is not a valid value of --cache-max-age <age>",
            "an age is a number with its unit, ms, s, m, h, d or w: 12h, 7d, 2w"
        ),
        (
            ["run", "x", "--keep", "7"], "'7' is not a valid value of --keep <age>",
            "an age is a number with its unit, ms, s, m, h, d or w: 12h, 7d, 2w"
        ),
        (
            ["cache", "gc", "--max-age", "7"], "'7' is not a valid value of --max-age <age>",
            "an age is a number with its unit, ms, s, m, h, d or w: 12h, 7d, 2w"
        ),
        (
            ["run", "x", "--blacklist-ttl", "404=7"], "'404=7' is not a valid value of --blacklist-ttl <age|list>",
            "an age is a number with its unit, ms, s, m, h, d or w, for all reasons or for each: 12h; 404=7d,badImage=1d"
        ),
        (
            ["run", "x", "--overwrite"], "--overwrite goes with --manifest FILE",
            "prefetch-coord run -h lists the options"
        ),
        (
            ["export", "--to", "files", "d"], "unknown option --to",
            "--format FORMAT says what is written; --out DIR names a folder, -o FILE a text"
        ),
        (
            ["export", "--format", "arrow"], "'arrow' is not a valid value of --format <format>",
            "one of jsonl, csv, tsv, failed, lock, html, files, tree, sdwebimage, webdataset, parquet, parquet-metadata"
        ),
        (
            ["export", "--format", "files", "--out", "d", "--overwrite"],
            "--overwrite goes with --output FILE; no file of a folder is replaced",
            "prefetch-coord export -h lists the options"
        ),
    ]

    @Test("A command line that cannot be used gets what is wrong and what to do", arguments: errors.indices)
    func usage(_ index: Int) {
        let (words, message, hint) = Self.errors[index]
        do {
            _ = try command(words)
            Issue.record("\(words) was taken")
        } catch {
            let usage = UsageError(
                SettingWords.message(for: error, of: CommandPath(words, of: CoordCommand.self).command), words,
                of: CoordCommand.self,
                others: CommandRunner.others)
            #expect(usage.message == message)
            #expect(usage.hint == hint)
        }
    }

    @Test("What other tools call a command is answered with commands that exist")
    func foreignCommands() {
        let known = Set(Self.paths.map { Array($0.words.dropFirst()) })
        #expect(Suggestion.namedCommands.count > 10)
        for words in Suggestion.namedCommands where words != ["--version"] {
            #expect(known.contains(words), "\(words)")
        }
        for word in ["ls", "stop", "list", "delete"] {
            #expect(Suggestion.forUnknown([word], of: CoordCommand.self)?.hint.contains("did you mean") == false)
        }
    }

    @Test("The surface has its bounds: options and lines of run --help, and commands")
    func bounds() {
        let run = CommandPath(["run"], of: CoordCommand.self)
        let lines = HelpPage(run, .full, width: 80).text.split(separator: "\n", omittingEmptySubsequences: false).count
        let options = run.options.filter { $0.shouldDisplay && !$0.isPositional }.count
        let commands = Self.paths.count {
            $0.command.configuration.subcommands.isEmpty || $0.command == WorkerCommand.self
        }
        #expect(
            options <= 90 && lines <= 220 && commands <= 32, "\(options) options, \(lines) lines, \(commands) commands")
        // Nothing is hidden.
        for (path, options) in zip(Self.paths, Self.options) {
            let isShown = options.allSatisfy { $0.shouldDisplay }
            #expect(isShown, "\(path.text)")
        }
    }

    @Test("What other tools call an option is answered with one that exists")
    func foreign() {
        let known = Set(Self.options.flatMap { $0.flatMap(\.names) })
        let missing = ForeignOptions.namedOptions.subtracting(known)
        #expect(missing == [])
    }

    @Test func quietTwiceIsSilent() {
        #expect(Verbosity(["run", "x", "-qq"]) == .silent && Verbosity(["run", "-q", "x", "--quiet"]) == .silent)
        #expect(Verbosity(["run", "x", "-q"]) == .quiet && Verbosity(["run", "x", "--", "-q"]) == .normal)
    }
}
