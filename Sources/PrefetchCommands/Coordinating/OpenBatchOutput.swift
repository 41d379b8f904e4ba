internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import Threading

/// Feeds lists of an open batch in the foreground, and says what holds it up.
struct OpenBatchOutput: Sendable {
    let id: String
    /// The list that is fed, as words that name it again; nil: those of others.
    var list: String?
    let session: Session
    /// What a command needs to find the same queue (``RedisLocation/words``).
    let location: String

    /// Gives a list its place.
    /// * `again`: whether a list that is there to its end is added once more.
    /// - Throws: `stopped` where a signal came first.
    func add(
        _ appender: ListAppender, again: Bool = false, _ stop: StopRequest
    ) async throws -> ListAppender.Added {
        let added = try await session.untilStopped(stop) { try await appender.add(again: again) }
        guard let added else { throw stopped }
        return added
    }

    /// Feeds a list that was added.
    /// - Throws: `stopped` where a signal came first.
    func feed(_ appender: ListAppender, _ added: ListAppender.Added, _ stop: StopRequest) async throws {
        guard !added.wasFed else { return }
        try await untilStopped(stop) { notice in try await appender.feed(added, notice: notice) }
    }

    /// Feeds until the batch is sealed.
    /// - Throws: `stopped` where a signal came first; `configuration` where the batch was ended.
    func feedToSeal(_ stop: StopRequest) async throws {
        let feeder = OpenBatchFeeder(queue: session.patient, batch: id, list: nil)
        try await untilStopped(stop) { notice in
            if case .closed(let why) = try await feeder.feed(to: nil, notice: notice) {
                throw ListAppender.refusal(of: id, why)
            }
        }
    }

    private func untilStopped(
        _ stop: StopRequest,
        _ body: @escaping @Sendable (@escaping @Sendable (OpenBatchFeeder.Notice) -> Void) async throws -> Void
    ) async throws {
        let hint = try await session.queue.workers.names().isEmpty ? "; no worker is running yet" : ""
        let said = Locked<ListFeeder.Wait?>(nil)
        let notice: @Sendable (OpenBatchFeeder.Notice) -> Void = { notice in
            switch notice {
            case .waitingForRoom(let wait):
                let isNew = said.withLock { said in
                    defer { said = wait }
                    return said != wait
                }
                if isNew { for line in FeedingText.lines(wait, hint) { Console.note(line) } }
            case .waitingForList(let segment):
                Console.note(
                    "waiting for \(TerminalText.escaped(segment.path)) of \(TerminalText.escaped(segment.host)), which was added "
                        + "before and is not queued to its end")
            }
        }
        let isFed: Bool
        do {
            isFed =
                try await session.untilStopped(stop) {
                    try await body(notice)
                    return true
                } ?? false
        } catch let error as PrefetchError where error.kind == .configuration {
            if let ended = try await session.queue.batches.status(of: id), let text = BatchText.endedWhileFed(ended) {
                Console.note(text)
                throw ExitCode(4)
            }
            throw error
        }
        if !isFed { throw stopped }
    }

    private var stopped: PrefetchError {
        let command =
            list.map { "submit --append \(TerminalText.escaped(id)) \($0)" }
            ?? "submit --seal \(TerminalText.escaped(id))"
        return PrefetchError(
            .stopped, "stopped before the whole list was queued; what is queued runs on",
            hint: "continue with: \(Shell.program) \(command)\(location)")
    }
}
