internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// `prefetch-coord submit --append`: adds a list to an open batch.
struct ListAddition: Sendable {
    /// The batch, or the beginning of its name.
    let batch: String
    let files: [String]
    let location: RedisLocation
    let table: TableOptions
    let empty: EmptyListOptions
    let window: String
    let jobSize: Int?
    /// Whether only a list that the batch has, and that was not queued to its end, is queued.
    let resumes: Bool
    /// Whether a list that the batch has is added once more.
    let repeats: Bool
    let isJSON: Bool

    func run() async throws {
        // No folder is made in a cache that is none: the session says what is wrong with it.
        if case .cache(let folder) = try location.place(), !PrivateRedis.isOurs(cache: folder) {
            return try await Session.with(location) { _ in }
        }
        // Before Redis is asked: a pipe may take as long as it likes, and Ctrl-C ends that.
        let given = try GivenList(
            files, cache: location.cacheFolder, table: table, empty: empty)
        let isAdded = Locked(false)
        do { try await add(given, isAdded) } catch {
            if !isAdded.withLock({ $0 }) { given.removeCopy() }
            throw error
        }
    }

    /// * `isAdded`: becomes true once the list is the batch's.
    private func add(_ given: GivenList, _ isAdded: Locked<Bool>) async throws {
        let stop = StopRequest()
        TerminationSignals.install { signal, count in stop.request(signal: signal, count: count) }
        try await Session.whenReady(location, until: stop, hint: "the same command again adds it") { session in
            let list = given.list
            if list.lineOptions.contains(.queryDiskSync) {
                throw ValidationError(
                    "queryDiskSync needs a batch of its own; an open batch gets its hits from workers")
            }
            let id = try await session.queue.catalog.resolve(batch)
            let appender = ListAppender(queue: session.patient, batch: id, list: list, window: window, jobSize: jobSize)
            if resumes { try await requireUnfinished(list, of: id, session.queue) }
            let output = OpenBatchOutput(
                id: id, list: GivenList.words(files, list), session: session, location: location.words)
            let added = try await output.add(appender, again: repeats, stop)
            isAdded.withLock { $0 = true }
            try await output.feed(appender, added, stop)
            // A copy of a list that the batch has already is wanted by nobody.
            if added.segment.path != list.absolutePath { given.removeCopy() }
            if isJSON {
                if let status = try await session.queue.batches.status(of: id) {
                    Console.print(BatchJSON.object(status).text)
                }
            } else {
                Console.print(text(added, of: id))
            }
        }
    }

    private func requireUnfinished(_ list: URLList, of id: String, _ queue: PrefetchQueue) async throws {
        let pushed = try await queue.batches.status(of: id)?.pushed ?? 0
        guard try await queue.lists.segments(of: id).contains(where: { $0.hash == list.hash && $0.end > pushed }) else {
            throw PrefetchError(
                .notFound, "\(id) has no such list that is not queued to its end",
                hint: "add it: prefetch-coord submit --append \(id) \(GivenList.words(files, list))")
        }
    }

    private func text(_ added: ListAppender.Added, of id: String) -> String {
        let segment = added.segment
        let urls = "\(Wording.count(segment.total)) URLs"
        let lines = "lines \(Wording.count(segment.line + 1)) to \(Wording.count(segment.line + segment.lines))"
        if added.isNew { return "\(TerminalText.escaped(id)): added \(urls) as its \(lines)" }
        return added.wasFed
            ? "\(TerminalText.escaped(id)): has these \(urls) already as its \(lines); nothing was added"
            : "\(TerminalText.escaped(id)): queued the rest of \(urls), its \(lines)"
    }
}
