internal import FoundationEssentials
internal import Prefetch
internal import Redis
internal import WebImage

/// A batch that is open in Redis, with what feeds it.
struct OpenBatch: Sendable {
    let id: String
    let total: Int
    /// Whether none of its URLs had ended when it was opened.
    var isFresh = false
    /// The list that it is fed from, and whether all of it is queued; nil of a retry.
    var list: (stream: ListStream, isFed: Bool)?
    /// Feeds until the batch is sealed; the closure is called with the reason of each wait.
    let feed: @Sendable (_ waiting: @Sendable (ListFeeder.Wait) -> Void) async throws(PrefetchError) -> ListFeeder.End
}

/// Where the URLs of a `run` come from.
enum BatchSource: Sendable {
    /// The lines of a list.
    case list(ListStream, BatchSettings, cache: DiskCache)
    /// The skipped lines of a batch, by default the newest; and the names of the settings that replace those of the batch.
    case skipped(of: String?, taking: Set<String>, from: BatchSettings)

    /// Whether there are URLs, as far as is known before Redis is asked.
    var isKnownToHaveURLs: Bool { if case .list = self { true } else { false } }

    /// The batch to work on: the unfinished one of the same URLs, or a new one.
    /// * `feeding`: the queue for its feeder, which may wait for Redis for longer than others.
    /// * `words`: what a command needs to find the queue; nil: no note says which batch was taken.
    func open(
        _ queue: PrefetchQueue, feeding: PrefetchQueue, words: String?
    ) async throws -> BatchRetry.Opening {
        switch self {
        case .list(let list, let settings, let cache):
            var feeder = BatchSubmission(queue: feeding, list: list, settings: settings, cache: .open(cache))
            if let unfinished = try await continued(queue, list, settings) {
                let (id, isFed) = (unfinished.status.id, unfinished.isFed)
                list.join(unfinished.status, isFed: isFed)
                feeder.hasGrown = unfinished.hasGrown
                return .batch(
                    OpenBatch(id: id, total: list.reading.total, list: (list, isFed)) {
                        [feeder] waiting async throws(PrefetchError) in
                        isFed ? .sealed : try await feeder.feed(id, waiting: waiting)
                    })
            }
            let id = try await BatchSubmission(queue: queue, list: list, settings: settings, cache: .open(cache)).open()
            return .batch(
                OpenBatch(id: id, total: list.reading.total, list: (list, false)) {
                    [feeder] waiting async throws(PrefetchError) in
                    try await feeder.feed(id, waiting: waiting)
                })
        case .skipped(let name, let given, let changes):
            let retry = BatchRetry(
                queue: queue, feeding: feeding, name: name, words: words, given: given, changes: changes)
            return try await retry.open(joinsRunning: true)
        }
    }

    /// The unfinished batch of this list, where its options are the same; says what differs otherwise.
    private func continued(
        _ queue: PrefetchQueue, _ list: ListStream, _ settings: BatchSettings
    ) async throws -> UnfinishedBatch? {
        guard let found = try await UnfinishedBatch.find(list, in: queue) else { return nil }
        let running = found.status
        if let broken = running.broken {
            Console.note("note: \(Health.broken(running.id, broken)); this is a new batch")
            return nil
        }
        let differences = settings.differences(ofWorkFrom: running.settings)
        guard differences.isEmpty, settings.turn.name == nil || settings.turn.name == running.id else {
            let reason =
                differences.isEmpty ? "under its name" : "with other settings (\(differences.joined(separator: "; ")))"
            Console.note("note: \(running.id) of the same list is unfinished \(reason); this is a new batch")
            return nil
        }
        Console.note(BatchText.continuing(running))
        if found.hasGrown { Console.note("\(TerminalText.escaped(list.name)) has more lines than it had: they follow") }
        // After `set` the same command applies its own values again.
        let paces = settings.paces(unlike: running.settings)
        if !paces.isEmpty, case .changed = try await queue.control.change(running.id, paces) {
            let texts = paces.sorted { $0.key < $1.key }.map {
                "--\($0.key.replacing("_", with: "-")) \($0.value.joined())"
            }
            Console.note("from now on its requests follow \(texts.joined(separator: " ")), as this command says")
        }
        return found
    }
}

/// A running batch that has a list.
struct UnfinishedBatch {
    let status: BatchStatus
    /// Whether there is more of the list than when the batch was made or sealed.
    let hasGrown: Bool

    /// Whether nothing of the list has to be queued any more.
    var isFed: Bool { status.isSealed && !hasGrown }

    /// The newest; says which batch has another list under the same path.
    static func find(_ list: ListStream, in queue: PrefetchQueue) async throws -> UnfinishedBatch? {
        let given = list.list
        for status in try await queue.catalog.running(
            ofList: given.absolutePath, sources: given.sources, head: given.head)
        {
            switch try list.continuation(of: status) {
            case .same: return UnfinishedBatch(status: status, hasGrown: false)
            case .grown: return UnfinishedBatch(status: status, hasGrown: true)
            case .different:
                Console.note(
                    "note: \(TerminalText.escaped(list.name)) is another list than when \(status.id) was queued from it, "
                        + "which is unfinished")
            }
        }
        return nil
    }
}
