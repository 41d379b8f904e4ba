internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// `prefetch-coord failures`: what was skipped, and why.
struct FailuresCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "failures",
        abstract: "List the URLs of a batch that ended without an image, and why.",
        usage: "prefetch-coord failures [<batch>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord failures --cache ./cache
              prefetch-coord failures urls-7f3a --json | jq -r .url > again.txt

            Of a batch that was retried: what is skipped still.
            """)

    @Argument(help: "A batch, or the beginning of its name; the newest by default.")
    var batch: String?

    @Flag(help: "One object of JSON a line.")
    var json = false

    @Option(help: "The list the batch was submitted from, where it is elsewhere now.", completion: .file())
    var list: String?

    @OptionGroup(title: "Secrets") var secrets: SecretOptions
    @OptionGroup(title: "Where") var location: RedisLocation

    func run() async throws {
        let list = try GivenList.repeatable(list)
        try await Session.with(location, looks: true) { session in
            let id = try await session.queue.catalog.resolve(batch)
            // The newest retry has every line that is skipped still.
            let status = try await BatchChain.read(id, queue: session.queue).newest
            let reader = FailureReader(queue: session.queue, status: status, listPath: list)
            try await reader.forEach { failure throws(PrefetchError) in
                Console.print(json ? BatchJSON.failure(failure).text : Self.text(failure))
                return !Console.isOutputClosed && Console.outputError == nil
            }
            let open = status.total - status.counts.finished
            if status.retryOf != nil, open > 0, !Console.isOutputClosed {
                Console.note(
                    "note: \(Wording.count(open)) URLs that are retried in \(TerminalText.escaped(status.id)) have no new outcome yet"
                )
            }
        }
    }

    private static func text(_ failure: FailureDetail) -> String {
        var what = failure.outcome.name
        if let status = failure.httpStatus, failure.outcome == .httpError { what += " \(status)" }
        let tries = failure.attempts > 1 ? ", \(failure.attempts) tries" : ""
        return
            "\(failure.line): \(TerminalText.url(failure.url))  \(what)  \(TerminalText.escaped(failure.detail))\(tries)"
    }
}
