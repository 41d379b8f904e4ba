internal import FoundationEssentials
internal import Prefetch
internal import Redis
internal import WebImage

/// A batch that is open in Redis, with what feeds it.
struct OpenBatch: Sendable {
    let id: String
    let total: Int
    /// Whether nothing of it had ended when it was opened.
    var isFresh = false
    /// Feeds until the batch is sealed; the closure hears what it waits for.
    let feed: @Sendable (_ waiting: @Sendable (ListFeeder.Wait) -> Void) async throws(PrefetchError) -> ListFeeder.End
}

/// Where the URLs of a `run` come from.
enum BatchSource: Sendable {
    /// The lines of a list.
    case list(URLList, BatchArguments, cache: String)
    /// What was skipped of a batch, the newest where none is named; and where its list is now, if not where it was read.
    case skipped(of: String?, list: String?, changes: BatchChanges)

    /// Whether there are URLs, as far as is known before Redis is asked.
    var isKnownToHaveURLs: Bool { if case .list(let list, _, _) = self { list.total > 0 } else { false } }

    /// The batch to work on: the unfinished one of the same URLs, or a new one.
    /// * `feeding`: the queue for its feeder, which may wait for Redis for longer than others.
    func open(_ queue: PrefetchQueue, feeding: PrefetchQueue) async throws -> BatchRetry.Opening {
        switch self {
        case .list(let list, let arguments, let cache):
            let submission = BatchSubmission(queue: queue, list: list, arguments: arguments, cache: cache)
            let feeder = BatchSubmission(queue: feeding, list: list, arguments: arguments, cache: cache)
            let unfinished = try await continued(queue, list, arguments)
            let id = if let unfinished { unfinished } else { try await submission.open() }
            return .batch(
                OpenBatch(id: id, total: list.total) { waiting async throws(PrefetchError) in
                    try await feeder.feed(id, waiting: waiting)
                })
        case .skipped(let name, let list, let changes):
            let retry = BatchRetry(
                queue: queue, feeding: feeding, name: name, listPath: list, changes: changes)
            return try await retry.open(joinsRunning: true)
        }
    }

    /// The unfinished batch of this list, where its options are the same; says what differs otherwise.
    private func continued(
        _ queue: PrefetchQueue, _ list: URLList, _ arguments: BatchArguments
    ) async throws -> String? {
        guard let running = try await queue.catalog.newest(ofList: list.hash, path: list.absolutePath).running else {
            return nil
        }
        if let broken = running.broken {
            Console.note("note: \(Health.broken(running.id, broken)); this is a new batch")
            return nil
        }
        let differences = arguments.options.differences(from: running.options) + endings(arguments, running)
        guard differences.isEmpty, arguments.record.name == nil || arguments.record.name == running.id else {
            Console.note(
                "note: \(running.id) of the same list is unfinished with other settings (\(differences.joined(separator: "; "))); "
                    + "this is a new batch")
            return nil
        }
        Console.note(BatchText.continuing(running))
        return running.id
    }

    /// In which of the ways to end early two batches differ.
    private func endings(_ arguments: BatchArguments, _ running: BatchStatus) -> [String] {
        var names: [String] = []
        let limit = running.deadline > 0 ? running.deadline - running.created : nil
        if arguments.record.timeLimit != limit {
            let was = limit.map { Wording.seconds(Double($0) / 1000) } ?? "none"
            names.append(arguments.record.deadline == nil ? "no --deadline, was \(was)" : "--deadline, was \(was)")
        }
        if arguments.record.maxFailures != running.maxFailures {
            names.append(
                "--max-failures \(arguments.record.maxFailures ?? "none"), was \(running.maxFailures ?? "none")")
        }
        if let finishAt = running.finishAt { names.append("no --finish-at, was \(finishAt)") }
        return names
    }
}
