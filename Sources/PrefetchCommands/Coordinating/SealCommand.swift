internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord seal`: an open batch has all its lists.
struct SealCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "seal",
        abstract: "Close an open batch: it has all its lists, and is done when their URLs have ended.",
        usage: "prefetch-coord seal <batch> [<options>]",
        discussion: """
            Example:
              prefetch-coord seal week --redis redis://host:6379/0

            From then on no list is added. Lists that are being added are queued to their
            end first; what somebody who stopped has left is queued by this command.
            """)

    @Argument(help: "The batch, or the beginning of its name.")
    var batch: String

    @Flag(help: "Print the batch as one line of JSON.")
    var json = false

    @OptionGroup(title: "Where") var location: RedisLocation

    func run() async throws {
        try await Session.with(location) { session in
            let stop = StopRequest()
            TerminationSignals.install { signal, count in stop.request(signal: signal, count: count) }
            let id = try await session.queue.catalog.resolve(batch)
            switch try await session.queue.lists.close(batch: id) {
            case .closed("single"):
                throw PrefetchError(
                    .configuration, "\(id) was not submitted with --open: it is sealed with its list",
                    hint: "look at it: prefetch-coord status \(id)")
            case .closed("gone"): throw ListAppender.refusal(of: id, "gone")
            case .closed(let why):
                throw PrefetchError(
                    .configuration, "\(id) is \(why) already", hint: "look at it: prefetch-coord status \(id)")
            case .at(let pushed):
                Console.note(
                    "\(TerminalText.escaped(id)) takes no more lists; it is sealed when all are queued, \(Wording.count(pushed)) URLs are"
                )
                try await OpenBatchOutput(id: id, session: session, location: location.words).feedToSeal(stop)
            case .pushed, .full: break
            }
            guard let status = try await session.queue.batches.status(of: id) else { return }
            Console.print(
                json
                    ? BatchJSON.object(status).text
                    : "sealed \(TerminalText.escaped(id)): \(Wording.count(status.total)) URLs, \(Wording.count(status.counts.finished)) finished"
            )
        }
    }
}
