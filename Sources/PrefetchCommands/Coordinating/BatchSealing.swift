internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord submit --seal`: an open batch takes no more lists.
///
/// Lists that are being added are queued to their end first; what a stopped `submit --append` has left is queued by this one.
struct BatchSealing: Sendable {
    /// The batch, or the beginning of its name.
    let batch: String
    let location: RedisLocation
    let isJSON: Bool

    func run() async throws {
        try await Session.with(location) { session in
            let stop = StopRequest()
            TerminationSignals.install { signal, count in stop.request(signal: signal, count: count) }
            let id = try await session.queue.catalog.resolve(batch)
            switch try await session.queue.lists.close(batch: id) {
            case .closed("single"):
                throw PrefetchError(
                    .configuration, "\(id) was not submitted with --open; it was sealed with its list",
                    hint: "see prefetch-coord status \(id)")
            case .closed("gone"): throw ListAppender.refusal(of: id, "gone")
            case .closed(let why):
                throw PrefetchError(
                    .configuration, "\(id) is \(why) already", hint: "see prefetch-coord status \(id)")
            case .at(let pushed):
                Console.note(
                    "\(TerminalText.escaped(id)) takes no more lists; it is sealed when all are queued, \(Wording.count(pushed)) URLs are"
                )
                try await OpenBatchOutput(id: id, session: session, location: location.words).feedToSeal(stop)
            case .pushed, .full: break
            }
            guard let status = try await session.queue.batches.status(of: id) else { return }
            Console.print(
                isJSON
                    ? BatchJSON.object(status).text
                    : "sealed \(TerminalText.escaped(id)): \(Wording.count(status.total)) URLs, \(Wording.count(status.counts.finished)) finished"
            )
        }
    }
}
