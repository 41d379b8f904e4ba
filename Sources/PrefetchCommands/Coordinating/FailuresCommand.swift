internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// `prefetch-coord failures`: what was skipped, and why.
struct FailuresCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "failures",
        abstract: "List the URLs that ended without an image, and why.",
        usage: "prefetch-coord failures [<batch>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord failures --cache ./cache
              prefetch-coord failures --by host
              prefetch-coord failures urls-7f3a --json | jq -r .url > again.txt

            After a retry it lists what is still skipped. With --by each cause has its
            remedy; --by host shows each host's most frequent cause.
            """)

    @Argument(help: "Batch, or the beginning of its name. (default: the newest)", completion: .batch)
    var batch: String?

    @Option(help: .value("category", "Count the URLs by cause or host instead of listing them."))
    var by: FailureCounts.Category?

    @Flag(help: "Print one JSON object per line; with --by one object.")
    var json = false

    @OptionGroup(title: "Output") var secrets: SecretOptions
    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func run() async throws {
        try await Session.with(location.record, readsOnly: true) { session in
            let id = try await MeantBatch.resolve(batch, "failures", location.words, in: session.queue)
            // The newest retry has every line that is skipped still.
            let status = try await BatchChain.read(id, queue: session.queue).newest
            let reader = FailureReader(queue: session.queue, status: status) {
                Console.note(BatchText.lost($0, of: status))
            }
            if let by {
                var counts = FailureCounts(by: by, of: status.id)
                try await reader.forEach { failure throws(PrefetchError) in
                    counts.note(failure)
                    return true
                }
                return try counts.sheet.print(asJSON: json)
            }
            try await reader.forEach { failure throws(PrefetchError) in
                Console.print(json ? failure.json.text : Self.text(failure))
                return Console.takesMore
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
        let tries = failure.tries > 1 ? ", \(failure.tries) tries" : ""
        return
            "\(failure.line): \(TerminalText.url(failure.url))  \(BatchText.cause(of: failure))  \(TerminalText.escaped(failure.detail))\(tries)"
    }
}
