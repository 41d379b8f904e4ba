internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import Redis

struct ReportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Write an HTML report of a batch.",
        usage: "prefetch-coord report [<batch>] [--output <file>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord report --cache ./cache --output report.html
              prefetch-coord report urls-7f3a > report.html

            One file with outcomes, causes, hosts, workers and the first skipped lines; no
            scripts, no external resources, light and dark, printable.
            """)

    @Argument(help: "Batch, or the beginning of its name. (default: the newest)")
    var batch: String?

    @Option(name: .shortAndLong, help: .file("File to write. (default: standard output)"), completion: .file())
    var output: String?

    @OptionGroup var replacing: ReplacingOptions

    @Option(help: .file("The list of the batch, if it has been moved."))
    var list: String?

    @OptionGroup(title: "Output") var secrets: SecretOptions
    @OptionGroup(title: "Redis") var location: RedisLocation

    func validate() throws {
        if output == "" { throw ValidationError("--output needs a file") }
        if replacing.overwrite, output == nil || output == "-" {
            throw ValidationError("--overwrite goes with --output FILE")
        }
    }

    func run() async throws {
        let path = output == "-" ? nil : output
        guard path != nil || isatty(STDOUT_FILENO) == 0 else {
            throw PrefetchError(
                .configuration, "a page is nothing to read on a terminal", hint: "name a file: --output report.html")
        }
        if let path { try OutputFile.check(path) }
        let list = try GivenList.repeatable(list)
        try await Session.with(location) { session in
            let id = try await session.queue.catalog.resolve(batch)
            if let path { try await check(path, id, session.queue, list) }
            let page = try await page(of: id, session.queue, list).html.text
            guard let path else { return Console.print(Array(page.utf8)) }
            let file = try OutputFile(path: path)
            try file.write(Array(page.utf8))
            try file.commit()
            Console.note("\(TerminalText.escaped(path)): \(Wording.bytes(page.utf8.count))")
        }
    }

    /// Looks whether a page may replace what is there.
    private func check(_ path: String, _ id: String, _ queue: PrefetchQueue, _ list: String?) async throws {
        let chain = try await BatchChain.read(id, queue: queue)
        try ReplacedFile.refuse(path, over: BatchOutput.lists(of: chain) + [list].compactMap { $0 })
        guard !replacing.overwrite, let file = ReplacedFile(path) else { return }
        guard ReportPage.isReport(file.head(4096), of: id) else { throw file.refusal("a report of this batch") }
    }

    private func page(of id: String, _ queue: PrefetchQueue, _ list: String?) async throws -> ReportPage {
        guard let look = try await queue.views.look(at: id) else {
            throw PrefetchError(.notFound, "there is no batch '\(id)'", hint: "see them all: prefetch-coord status")
        }
        var page = ReportPage(look: look)
        page.names = try await queue.workerRecords.all().filter { look.counts[$0.id] != nil }
            .compactMap(\.report.names).reduce(NameReport(), +)
        do throws(PrefetchError) {
            try await FailureReader(queue: queue, status: look.status, listPath: list).forEach { failure in
                page.failures.append(failure)
                return page.failures.count < ReportPage.maxFailures
            }
        } catch {
            guard list == nil, error.kind == .notFound || error.kind == .unreadableList else { throw error }
            // Some skipped URLs have only an outcome, and the list is gone: show those with details.
            page.failures = try await queue.results.someFailures(of: id, most: ReportPage.maxFailures)
                .sorted { $0.key < $1.key }.map(\.value)
        }
        return page
    }
}
