internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import Redis

/// `prefetch-coord report`: a batch as a page for a browser.
struct ReportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Write a batch as one HTML file: curves, causes, hosts, sizes.",
        usage: "prefetch-coord report [<batch>] [--output <file>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord report --cache ./cache --output report.html
              prefetch-coord report urls-7f3a --transfers worker.log > report.html

            One file without scripts that asks for nothing from outside, light or dark as
            the reader has it, and fit for printing. Sizes, formats and the curve come from
            the images: they are there where --cache is. How long transfers took comes from
            what workers wrote with --transfer-log.
            """)

    @Argument(help: "A batch, or the beginning of its name; the newest by default.")
    var batch: String?

    @Option(name: .shortAndLong, help: "The file; standard output by default.", completion: .file())
    var output: String?

    @Option(help: "A file that workers wrote with --transfer-log; may be given again.")
    var transfers: [String] = []

    @Option(help: "The list the batch was submitted from, where it is elsewhere now.")
    var list: String?

    @OptionGroup(title: "Secrets") var secrets: SecretOptions
    @OptionGroup(title: "Where") var location: RedisLocation

    func validate() throws {
        if output == "" { throw ValidationError("--output wants a file") }
    }

    func run() async throws {
        let path = output == "-" ? nil : output
        guard path != nil || isatty(STDOUT_FILENO) == 0 else {
            throw PrefetchError(
                .configuration, "a page is nothing to read on a terminal", hint: "name a file: --output report.html")
        }
        // What cannot be written is said before the cache is walked.
        if let path { try OutputFile.check(path) }
        let cache = location.cacheFolder
        let list = try GivenList.repeatable(list)
        try await Session.with(location) { session in
            let id = try await session.queue.catalog.resolve(batch)
            let report = try await BatchReport.read(
                id, queue: session.queue, cache: cache, listPath: list, logs: transfers)
            let page = ReportPage(report: report).html.text
            guard let path else { return Console.print(Array(page.utf8)) }
            let file = try OutputFile(path: path)
            try file.write(Array(page.utf8))
            try file.commit()
            Console.note("\(TerminalText.escaped(path)): \(Wording.bytes(page.utf8.count))")
            if cache == nil { Console.note("note: without --cache it has no curve, sizes and formats") }
        }
    }
}
