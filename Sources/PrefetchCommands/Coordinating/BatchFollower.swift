internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// Follows one batch to its end for a person: lines redrawn in place on a terminal, plain lines elsewhere. What `run`, `submit --wait` and
/// `watch` show.
struct BatchFollower: Sendable {
    let queue: PrefetchQueue
    let id: String
    /// Whether lines are printed.
    let isQuiet: Bool
    /// What to type so that refused addresses are opened.
    let allowNetHint: @Sendable (_ address: String) -> String
    /// How long a Redis that is away is waited for; nil = until the task is cancelled.
    var patience: Duration? = .seconds(10)
    /// Whether plain lines begin with the counts of now.
    var saysPresent = false

    /// Returns the batch once it is done or cancelled; nil where the task was cancelled first.
    func follow() async throws(PrefetchError) -> BatchStatus? {
        guard !isQuiet else { return try await look { _, _ in } }
        guard Terminal.canRedraw else {
            var lines = ProgressLines(saysPresent: saysPresent)
            return try await look { status, _ async in
                if lines.isDue(status) { Console.note(lines.line(for: status, await load())) }
            }
        }
        let progress = InlineProgress()
        let end = await withTaskGroup(of: Void.self) { group in
            group.addTask { await progress.run() }
            defer { group.cancelAll() }
            return await result(progress)
        }
        await progress.end()
        return try end.get()
    }

    private func result(_ progress: InlineProgress) async -> Result<BatchStatus?, PrefetchError> {
        do throws(PrefetchError) {
            return .success(
                try await look(readsOutcomes: true) { status, settled async in
                    let skipped = settled.filter(\.outcome.isSkipped)
                    let named = await describe(Array(skipped.prefix(await progress.room)))
                    await progress.show(
                        status, await load(), failures: named, unnamed: skipped.count - named.count)
                })
        } catch {
            return .failure(error)
        }
    }

    /// Looks at the batch again and again; `show` sees every reading, and where outcomes are read those that are new.
    private func look(
        readsOutcomes: Bool = false, _ show: (BatchStatus, [SettledURL]) async -> Void
    ) async throws(PrefetchError) -> BatchStatus? {
        let tail = OutcomeTail(
            queue: queue, batch: id, from: .present, readsOutcomes: readsOutcomes, patience: patience,
            notice: Self.tell)
        var named: Set<String> = []
        while let news = try await tail.next() {
            if news.status.counts[.refused] > named.count || news.isEnd { try await tellRefusals(&named) }
            await show(news.status, news.settled)
            if news.isEnd { return news.status }
        }
        return nil
    }

    /// Says what becomes of Redis.
    @Sendable static func tell(_ notice: OutcomeTail.Notice) {
        switch notice {
        case .redisAway(let reason): Console.note("waiting for Redis: \(TerminalText.escaped(reason))")
        case .redisBack: Console.note("Redis is back")
        }
    }

    /// Explains each address that the policy refused, once.
    private func tellRefusals(_ named: inout Set<String>) async throws(PrefetchError) {
        do throws(RedisError) {
            for (host, message) in try await queue.refusals(of: id) where named.insert(host).inserted {
                guard named.count <= 20 else { continue }
                Console.note("refused: \(TerminalText.escaped(message))")
                Console.note("hint: if that network is yours, \(allowNetHint(host))")
            }
        } catch {
            // Comes again with the next look, which waits for a Redis that is away.
            if !error.isTransient && error.code != .interrupted { throw PrefetchError(error) }
        }
    }

    private func load() async -> WorkerLoad {
        do throws(RedisError) { return WorkerLoad(try await queue.workerFacts()) } catch { return WorkerLoad() }
    }

    /// A line for each of these URLs that were skipped.
    private func describe(_ skipped: [SettledURL]) async -> [String] {
        guard !skipped.isEmpty else { return [] }
        let details: [Int: FailureDetail]
        do throws(RedisError) { details = try await queue.details(of: id, indices: skipped.map(\.index)) } catch {
            details = [:]
        }
        return skipped.map { item in
            guard let detail = details[item.index] else { return "skipped: \(item.outcome.name)" }
            let status = detail.outcome == .httpError ? detail.httpStatus.map { " \($0)" } ?? "" : ""
            return "skipped: \(detail.outcome.name)\(status)  \(TerminalText.url(detail.url))"
        }
    }

    /// Runs what follows a batch until it ends or a signal comes; nil for the latter.
    static func untilStopped<Result: Sendable>(
        _ stop: StopRequest, _ session: Session, _ body: @escaping @Sendable () async throws -> Result?
    ) async throws -> Result? {
        try await withThrowingTaskGroup(of: Result?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                await stop.first.wait()
                // A Redis that does not answer must not hold up the end.
                if stop.first.isOpen { session.queue.connection.interrupt() }
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }
}

/// The end of a batch as an exit code.
enum BatchExit {
    /// 0 all there, 3 some skipped, 4 cancelled; one that ended with as many URLs as were to be waited for has finished.
    static func code(_ status: BatchStatus, allowed: AllowedSkips?) -> Int32 {
        if status.state == .cancelled && status.endedBy != .finishAt { return 4 }
        let skipped = status.counts.skipped
        if skipped == 0 || allowed?.allows(skipped, of: status.total) ?? false { return 0 }
        return 3
    }
}
