internal import FoundationEssentials
internal import Prefetch
internal import Redis
internal import WebImage

/// Makes the next batch of what a batch skipped, or finds the one that runs.
struct BatchRetry: Sendable {
    /// What there is to do.
    enum Opening: Sendable {
        case batch(OpenBatch)
        /// Every line has an image already; the newest batch of the chain.
        case nothing(BatchStatus)
    }

    let queue: PrefetchQueue
    /// The queue for its feeder, which may wait for Redis for longer than others.
    let feeding: PrefetchQueue
    /// The batch, or the beginning of its name; nil for the newest.
    let name: String?
    /// What a command needs to find the queue; nil: it does not say which batch is the newest.
    var words: String?
    /// The names of the settings that differ from the earlier batch, and their values.
    var given: Set<String> = [], changes = BatchSettings()

    /// Takes up the newest batch of the chain.
    /// * `joinsRunning`: whether a retry that already runs is joined; otherwise only one whose list is not queued to its end is continued.
    /// - Throws: `notFound`; `stopped` where the newest runs; what reading its skipped lines throws.
    func open(joinsRunning: Bool) async throws(PrefetchError) -> Opening {
        let id = try await queue.catalog.resolve(name)
        if name == nil, let words { try await MeantBatch.tell(id, "retry", words, queue) }
        while true {
            let chain = try await BatchChain.read(id, queue: queue)
            let newest = chain.newest
            if newest.state == .running {
                guard chain.batches.count > 1, joinsRunning || !newest.isSealed else { throw Self.runs(newest) }
                Console.note(BatchText.continuing(newest))
                let kept = newest.settings.differences(from: newest.settings.taking(given, of: changes))
                if !kept.isEmpty {
                    let settings = TerminalText.escaped(kept.joined(separator: "; "))
                    Console.note(
                        "note: \(TerminalText.escaped(newest.id)) was begun before, and keeps its settings (\(settings))"
                    )
                }
                return .batch(opened(newest.id, parent: chain.batches[chain.batches.count - 2], isFed: newest.isSealed))
            }
            guard newest.counts.skipped > 0 else { return .nothing(newest) }
            // Before there is a batch: one whose lines cannot be read could never be fed.
            let entries = BatchEntries(skippedOf: newest, queue: queue) { Console.note(BatchText.lost($0, of: newest)) }
            try await entries.forEach { _ async throws(PrefetchError) in false }
            let made: String?
            do throws(RedisError) {
                made = try await queue.batches.retry(
                    of: newest, root: chain.root.id, host: ThisHost.name, taking: given, of: changes,
                    nonce: UUID().uuidString)
            } catch {
                throw PrefetchError(error)
            }
            // Somebody else has made one meanwhile.
            guard let made else { continue }
            Console.note(
                "retrying the \(Wording.count(newest.counts.skipped)) skipped of \(Wording.count(newest.total)) URLs of "
                    + "\(TerminalText.escaped(newest.id)) as \(made)")
            return .batch(opened(made, parent: newest, isFed: false))
        }
    }

    private func opened(_ id: String, parent: BatchStatus, isFed: Bool) -> OpenBatch {
        let entries = BatchEntries(skippedOf: parent, queue: feeding)
        let feeder = ListFeeder(queue: feeding, entries: entries, of: "what \(parent.id) skipped", batch: id)
        return OpenBatch(id: id, total: parent.counts.skipped) { waiting async throws(PrefetchError) in
            isFed ? .sealed : try await feeder.feed(waiting: waiting)
        }
    }

    private static func runs(_ status: BatchStatus) -> PrefetchError {
        PrefetchError(
            .stopped,
            "\(TerminalText.escaped(status.id)) is still running: \(Wording.count(status.counts.finished)) of \(status.totalText) finished",
            hint: "retry when it is done, or end it first: prefetch-coord cancel \(status.id)")
    }
}
