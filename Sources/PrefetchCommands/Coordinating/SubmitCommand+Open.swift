internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

extension SubmitCommand {
    /// A batch that takes more lists; its first one may come later.
    func submitOpen() async throws {
        let list: URLList? = try file.map { try givenList($0).list }
        if batch.options.options.union(list?.lineOptions ?? []).contains(.queryDiskSync) {
            throw ValidationError(
                "queryDiskSync is for a list of its own; a batch that is open has its hits from workers")
        }
        BatchSubmission.warn(of: list, batch)
        let place = try location.placeOfWorker()
        if case .cache(let folder) = place { _ = try CacheOpening.forWriting(folder) }
        let stop = StopRequest()
        TerminationSignals.install { signal, count in stop.request(signal: signal, count: count) }
        try await Session.whenThere(
            location, at: place, makes: true, until: stop, hint: "the same command again makes the batch"
        ) { session in
            var new = BatchSubmission.batch(list, batch)
            new.isOpen = true
            let id = try await BatchSubmission.open(new, slot: slot, in: session.queue)
            if !json && !(wait && quiet) { Console.print(id) }
            if let list { try await feedOpen(id, list, session, stop) }
            try await finishOpen(id, list?.total ?? 0, session, stop)
        }
    }

    /// Goes on with an open batch that has this list; false where there is none.
    func resumeOpen(_ list: URLList, _ session: Session, _ stop: StopRequest) async throws -> Bool {
        // A batch of this list alone comes first: it needs its list to end.
        guard try await session.queue.catalog.newest(ofList: list.hash).running == nil,
            let found = try await session.queue.catalog.openBatch(withList: list.hash)
        else { return false }
        Console.note(
            "going on with \(TerminalText.escaped(found.id)): \(Wording.count(found.pushed)) of \(Wording.count(found.total)) URLs are queued"
        )
        if !json && !(wait && quiet) { Console.print(found.id) }
        try await feedOpen(found.id, list, session, stop)
        try await finishOpen(found.id, list.total, session, stop)
        return true
    }

    private func feedOpen(_ id: String, _ list: URLList, _ session: Session, _ stop: StopRequest) async throws {
        let output = OpenBatchOutput(id: id, list: list.path, session: session, location: location.words)
        let appender = ListAppender(
            queue: session.patient, batch: id, list: list, window: batch.window, jobSize: batch.jobSize)
        try await output.feed(appender, try output.add(appender, stop), stop)
    }

    private func finishOpen(_ id: String, _ total: Int, _ session: Session, _ stop: StopRequest) async throws {
        if wait { return try await follow(id, session, stop) }
        if json, let status = try await session.queue.batches.status(of: id) {
            Console.print(BatchJSON.object(status).text)
        }
        Console.note("queued \(Wording.count(total)) URLs as \(TerminalText.escaped(id)), which is open")
        Console.note("add a list:   \(Shell.program) append \(TerminalText.escaped(id)) FILE\(location.words)")
        Console.note("close it:     \(Shell.program) seal \(TerminalText.escaped(id))\(location.words)")
        try await tellWatch(id, session)
    }
}
