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

    private enum View {
        case none
        case plain(ProgressLines)
        case inline(InlineProgress)
    }

    /// Returns the batch once it is done or cancelled; nil where the task was cancelled first.
    func follow() async throws(PrefetchError) -> BatchStatus? {
        var view = View.none
        if !isQuiet {
            view = Terminal.canRedraw ? .inline(InlineProgress()) : .plain(ProgressLines(saysPresent: saysPresent))
        }
        var isInline = false
        if case .inline = view { isInline = true }
        defer {
            if case .inline(var progress) = view { progress.end() }
        }
        let tail = OutcomeTail(
            queue: queue, batch: id, from: .present, readsOutcomes: isInline, patience: patience, notice: Self.tell)
        var named: Set<String> = []
        while let news = try await tail.next() {
            let status = news.status
            if status.counts[.refused] > named.count || news.isEnd { try await tellRefusals(&named) }
            switch view {
            case .none: break
            case .plain(var lines):
                if lines.isDue(status) { Console.note(lines.line(for: status, await load())) }
                view = .plain(lines)
            case .inline(var progress):
                let skipped = news.settled.filter(\.outcome.isSkipped)
                progress.add(
                    await describe(Array(skipped.prefix(progress.room))), unnamed: max(0, skipped.count - progress.room)
                )
                if progress.isDue || news.isEnd { progress.draw(status, await load()) }
                view = .inline(progress)
            }
            if news.isEnd { return status }
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
    /// 0 all there, 3 some skipped, 4 cancelled.
    static func code(_ status: BatchStatus, allowed: AllowedSkips?) -> Int32 {
        if status.state == .cancelled { return 4 }
        let skipped = status.counts.skipped
        if skipped == 0 || allowed?.allows(skipped, of: status.total) ?? false { return 0 }
        return 3
    }
}
