internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// Follows one batch to its end for a person: lines redrawn in place on a terminal, plain lines elsewhere. What `run`, `submit --wait` and
/// `watch` show.
struct BatchFollower: Sendable {
    let queue: PrefetchQueue
    let id: String
    /// How progress is shown; never `auto`.
    let mode: ProgressMode
    /// What to type so that refused addresses are opened.
    let allowNetHint: @Sendable (_ address: String) -> String
    /// How long a Redis that is away is waited for; nil = until the task is cancelled.
    var waitLimit: Duration? = .seconds(10)
    /// Whether plain lines begin with the counts of now.
    var saysPresent = false
    /// Whether events begin with the first URL of the batch, not with the counts of now.
    var tellsFromStart = false
    /// Whether lines that are redrawn have colours.
    var isColoured = false

    /// Whether every URL that fails gets a line, also in plain progress.
    var namesEveryFailure = false

    /// Returns the batch once it is done or cancelled; nil where the task was cancelled first.
    func follow() async throws(PrefetchError) -> BatchStatus? {
        switch mode {
        case .none: return try await poll { _, _ in }
        case .json: return try await events()
        case .plain: return try await plain()
        case .auto, .tty: return try await inline()
        }
    }

    /// Lines now and then, and one for each worker that is lost.
    private func plain() async throws(PrefetchError) -> BatchStatus? {
        let end = await withTaskGroup(of: Void.self) { group -> Result<BatchStatus?, PrefetchError> in
            group.addTask { await LostWorkers(queue: queue, batch: id).tell() }
            defer { group.cancelAll() }
            var lines = ProgressLines(saysPresent: saysPresent)
            do throws(PrefetchError) {
                return .success(
                    try await poll(readsOutcomes: namesEveryFailure) { status, settled async in
                        for line in await describe(settled.filter(\.outcome.isSkipped)) { Console.note(line) }
                        if lines.isDue(status) { Console.note(lines.line(for: status, await load(status))) }
                    })
            } catch {
                return .failure(error)
            }
        }
        return try end.get()
    }

    /// The events of `watch --json` on standard error, and a rate each second while the batch runs.
    private func events() async throws(PrefetchError) -> BatchStatus? {
        let following = BatchEventReader(
            queue: queue, batch: id, from: tellsFromStart ? .beginning : .present, waitLimit: waitLimit,
            notice: Self.tell
        )
        var named: Set<ByteText> = []
        var rates = RateEvents()
        while let events = try await following.next() {
            if !events.isEmpty { Console.draw(events.map { EventAnswer($0).json.text + "\n" }.joined()) }
            let status = await following.status
            let hasEnded = await following.hasEnded
            if let status, !hasEnded, rates.isDue(status) {
                Console.draw(rates.event(status, await load(status)).json.text + "\n")
            }
            if let status, status.counts[.refused] > named.count || hasEnded { try await tellRefusals(&named) }
            if hasEnded { return status }
        }
        return nil
    }

    private func inline() async throws(PrefetchError) -> BatchStatus? {
        let progress = InlineProgress(isColoured: isColoured, namesEveryFailure: namesEveryFailure)
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
                try await poll(readsOutcomes: true) { status, settled async in
                    let skipped = settled.filter(\.outcome.isSkipped)
                    let named = await describe(Array(skipped.prefix(await progress.room)))
                    await progress.show(status, await load(status), failures: named)
                })
        } catch {
            return .failure(error)
        }
    }

    /// Polls the batch; `show` sees every reading, and where outcomes are read those that are new.
    private func poll(
        readsOutcomes: Bool = false, _ show: (BatchStatus, [SettledURL]) async -> Void
    ) async throws(PrefetchError) -> BatchStatus? {
        let tail = OutcomeTail(
            queue: queue, batch: id, from: .present, readsOutcomes: readsOutcomes, waitLimit: waitLimit,
            notice: Self.tell)
        var named: Set<ByteText> = []
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
    private func tellRefusals(_ named: inout Set<ByteText>) async throws(PrefetchError) {
        do throws(RedisError) {
            for (host, message) in try await queue.reports.refusals(of: id) where named.insert(host).inserted {
                guard named.count <= 20 else { continue }
                Console.note("refused: \(TerminalText.escaped(message))")
                // What stands for every address of a machine is nobody's network, and connects to this one.
                guard !message.contains("an unspecified address") else { continue }
                Console.note("hint: if that network is yours, \(allowNetHint(host))")
            }
        } catch {
            // Comes again with the next poll, which waits for a Redis that is away, or refuses us for a while.
            if !error.isTransient, error.code != .interrupted, error.code != .refused { throw PrefetchError(error) }
        }
    }

    private func load(_ status: BatchStatus) async -> WorkerLoad {
        do throws(RedisError) {
            let snapshot = try await queue.views.snapshot(newest: 0)
            var load = WorkerLoad(snapshot)
            load.last = try await LastURLs.read(status, queue)
            load.limit = RunLimit(workers: snapshot.workers, batches: [status])
            return load
        } catch { return WorkerLoad() }
    }

    /// A line for each of these URLs that were skipped and of which Redis has the details.
    private func describe(_ skipped: [SettledURL]) async -> [String] {
        guard !skipped.isEmpty else { return [] }
        let details: [Int: FailureDetail]
        do throws(RedisError) { details = try await queue.results.details(of: id, indices: skipped.map(\.index)) } catch
        {
            details = [:]
        }
        return skipped.compactMap { item in
            details[item.index].map { "skipped: \(BatchText.cause(of: $0))  \(TerminalText.url($0.url))" }
        }
    }
}

/// The end of a batch as an exit code.
enum BatchExit {
    /// 0: every wanted image is there; 3: some failed, or there is no image at all; 74: some files could not be stored; 4: cancelled, but not by
    /// `--finish-at`.
    static func code(_ status: BatchStatus, allowed: PrefetchSettings.Share?) -> Int32 {
        if status.state == .cancelled && status.endedBy != .finishAt { return 4 }
        let counts = status.counts
        let missing = counts.finished == counts.skipped ? counts.skipped : counts.skipped - counts[.filtered]
        if missing == 0 || allowed?.allows(missing, of: status.total) ?? false { return 0 }
        return counts[.notStored] > 0 ? 74 : 3
    }
}
