internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
package import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// One `run` from its Redis to its exit code.
struct BatchRun: Sendable {
    let settings: RunSettings
    let cache: RunCache
    let source: BatchSource
    /// Prints its own summary of the ended batch, and returns the exit code.
    var report: (@Sendable (PrefetchQueue, BatchStatus) async throws -> Int32)?
    /// Of the shards that it writes.
    private let owner = ShardOwner()
    /// Shards that were written while it ran.
    private let written = Locked(0)

    init(settings: RunSettings, cache: RunCache, source: BatchSource) {
        (self.settings, self.cache, self.source) = (settings, cache, source)
    }

    /// A run of a list.
    init(
        command: RunCommand, cache: RunCache, list: ListStream, batch: BatchSettings, fetch: FetchSettings,
        workerCount: Int,
        report: (@Sendable (PrefetchQueue, BatchStatus) async throws -> Int32)? = nil
    ) {
        settings = command.settings(fetch, workers: workerCount)
        self.cache = cache
        source = .list(list, batch, cache: cache.disk)
        self.report = report
    }

    func run() async throws {
        let lock = try await RunLock.acquire(cache.state)
        // The lock is given up with its last reference: not before the run is over.
        defer { withExtendedLifetime(lock) {} }
        let workers = try RunWorkers(settings)
        let redisFailure = Failure()
        var session: Session?
        let code: Int32
        do {
            let server = try await PrivateRedis.attach(
                cache.state,
                willStart: { if source.isKnownToHaveURLs { await workers.startAhead(of: $0) } }
            ) { redisFailure.note($0) }
            let opened = try await Session(attachment: server, queue: settings.queue)
            session = opened
            code = try await process(opened, lock, workers, redisFailure)
        } catch {
            // They would wait for the Redis that ends now.
            await workers.end()
            await session?.close()
            throw error
        }
        await session?.close()
        await workers.end()
        if code != 0 { throw ExitCode(code) }
    }

    /// Opens the batch, works on it until it is over, and prints its summary; returns the exit code.
    private func process(
        _ session: Session, _ lock: RunLock, _ workers: RunWorkers, _ redisFailure: Failure
    ) async throws -> Int32 {
        let queue = session.queue
        // No other run uses this cache, so every registered worker is dead: jobs of an earlier run are free at once.
        if lock.isAlone {
            try await reapAll(queue, but: workers.names)
            owner.beginAlone()
        }
        lock.share()
        let stop = StopRequest()
        try await checkOutputs(queue)
        var batch: OpenBatch
        let words = settings.verbosity > .quiet ? " \(settings.location)" : nil
        switch try await source.open(queue, feeding: session.waitingQueue, words: words) {
        case .batch(let opened): batch = opened
        case .nothing(let newest):
            stop.listen()
            return try await finishWithoutWork(queue, newest, stop)
        }
        let asked = WallClock.now
        let before = try await queue.batches.status(of: batch.id)
        let protection = before.flatMap { protect($0, asked: asked) }
        defer { withExtendedLifetime(protection) {} }
        batch.isFresh = before?.counts.finished == 0
        stop.listen()
        if batch.total == 0 {
            _ = try await batch.feed({ _ in })
            return try await finish(queue, try await status(of: batch, queue), stop)
        }
        if lock.isAlone, settings.verbosity > .quiet, let text = try await waiting(beside: batch.id, queue) {
            Console.note(text)
        }
        workers.begin(session, batch.id)
        let failure = await work(queue, batch, workers.supervisor, stop, redisFailure)
        await workers.end()
        if let failure { throw failure }
        if let signal = stop.forced { return TerminationSignals.exitCode(signal) }
        let status = try await status(of: batch, queue)
        if status.state == .running {
            let finished = status.counts.finished
            throw PrefetchError(
                .stopped,
                "stopped\(status.shareText.map { " at \($0)" } ?? ""): \(Wording.count(finished)) of "
                    + "\(status.totalText) finished, nothing is lost",
                hint: "the same command again continues")
        }
        return try await finish(queue, status, stop)
    }

    /// The unfinished batches of this cache that this run does not touch.
    private func waiting(beside id: String, _ queue: PrefetchQueue) async throws -> String? {
        let others = try await queue.catalog.running().filter { $0 != id }
        guard let newest = try await queue.batches.statuses(of: others).max(by: { $0.created < $1.created }) else {
            return nil
        }
        return BatchText.waiting(newest, others: others.count - 1, settings.location)
    }

    /// - Throws: `notFound` if Redis has lost it.
    private func status(of batch: OpenBatch, _ queue: PrefetchQueue) async throws -> BatchStatus {
        guard let status = try await queue.batches.status(of: batch.id) else {
            throw PrefetchError(.notFound, "Redis no longer has the batch \(batch.id)", hint: "run it again")
        }
        return status
    }

    /// Before a retry is queued; of a list it was looked before there was a Redis.
    private func checkOutputs(_ queue: PrefetchQueue) async throws {
        guard case .skipped(let name, _, _) = source, !settings.outputs.isEmpty else { return }
        let id = try await queue.catalog.resolve(name)
        for target in settings.outputs { try await output(queue).check(id, target, overwrites: settings.overwrites) }
    }

    private func output(_ queue: PrefetchQueue) -> BatchOutput {
        var output = BatchOutput(queue: queue, cache: .open(cache.disk))
        (output.owner, output.written) = (owner, written.withLock { $0 })
        return output
    }

    /// Runs the workers, feeds, follows and watches for signals until one of them ends the run; then no worker is left.
    private func work(
        _ queue: PrefetchQueue, _ batch: OpenBatch, _ supervisor: WorkerSupervisor, _ stop: StopRequest,
        _ redisFailure: Failure
    ) async -> PrefetchError? {
        await withTaskGroup(of: PrefetchError?.self) { group in
            group.addTask {
                do throws(PrefetchError) {
                    try await supervisor.run()
                    return nil
                } catch {
                    return error
                }
            }
            let error = await follow(queue, batch, supervisor, stop, redisFailure)
            if error == nil { await supervisor.drain() } else { await supervisor.kill() }
            let failure = await group.next() ?? nil
            return error ?? failure
        }
    }

    /// The address of a refusal as `--allow-net` takes it: without a port.
    static func address(_ refused: String) -> String {
        let text = refused.split(separator: " ").last.map(String.init) ?? refused
        return text.filter { $0 != "(" && $0 != ")" }
    }

    /// How the wait for a batch can end.
    private enum Step: Sendable {
        case over
        case goOn
        case failed(PrefetchError)
    }

    private func follow(
        _ queue: PrefetchQueue, _ batch: OpenBatch, _ supervisor: WorkerSupervisor, _ stop: StopRequest,
        _ redisFailure: Failure
    ) async -> PrefetchError? {
        let follower = BatchFollower(
            queue: queue, id: batch.id, mode: settings.progress,
            allowNetHint: { "add --allow-net \(Self.address($0))" },
            tellsFromStart: batch.isFresh, isColoured: settings.isColoured,
            namesEveryFailure: settings.verbosity == .verbose)
        // Before anything is queued.
        let limits = settings.outputs.map { _ in FeedLimit.Writer() }
        for (target, limit) in zip(settings.outputs, limits) {
            guard case .shards(_, let options) = target else { continue }
            batch.list?.stream.limits.set(ShardExport.mostOpen * options.perShard, by: limit)
        }
        return await withTaskGroup(of: Step.self) { group in
            group.addTask {
                let hasSaidShards = Locked(false)
                do throws(PrefetchError) {
                    _ = try await batch.feed { wait in
                        // A full window is what workers of this very run take from.
                        guard wait != .window else { return }
                        // Once: it comes and goes.
                        if wait == .shards, hasSaidShards.withLock({ said in (said, said = true).0 }) { return }
                        for line in FeedingText.lines(wait) { Console.note(line) }
                    }
                    return .goOn
                } catch {
                    return error.kind == .stopped ? .goOn : .failed(error)
                }
            }
            group.addTask {
                do throws(PrefetchError) {
                    return try await follower.follow() == nil ? .goOn : .over
                } catch {
                    return .failed(error)
                }
            }
            group.addTask {
                // Workers leave by themselves only where none of them can work; the reason is theirs.
                await supervisor.waitForEnd()
                return .over
            }
            for (target, limit) in zip(settings.outputs, limits) {
                group.addTask {
                    await writeShards(of: batch, queue, to: target, limit)
                    return .goOn
                }
            }
            group.addTask {
                await redisFailure.noted.wait()
                return redisFailure.error.map { .failed($0) } ?? .goOn
            }
            group.addTask {
                await stop.first.wait()
                guard stop.first.isOpen else { return .goOn }
                await drain(supervisor, stop)
                return .over
            }
            defer { group.cancelAll() }
            for await step in group {
                switch step {
                case .over: return nil
                case .goOn: continue
                case .failed(let error): return error
                }
            }
            return nil
        }
    }

    /// Those that are not written while the batch runs are at its end.
    private func writeShards(
        of batch: OpenBatch, _ queue: PrefetchQueue, to target: BatchOutput.Target, _ limit: FeedLimit.Writer
    ) async {
        guard let (list, isFed) = batch.list else { return }
        defer { list.limits.set(nil, by: limit) }
        do throws(PrefetchError) {
            try await output(queue).follow(batch.id, list, limit, isFed: isFed, to: target) { new in
                written.withLock { $0 += new }
            }
        } catch {
            // The batch is over, or the run is stopped.
            if Task.isCancelled || error.kind == .stopped { return }
            Console.note("note: shards are written at the end: \(error.message)")
        }
    }

    private func drain(_ supervisor: WorkerSupervisor, _ stop: StopRequest) async {
        Console.note(
            "finishing transfers in flight, \(Int(settings.fetch.drainTimeout)) s at most; Ctrl-C again stops now, "
                + "nothing is lost")
        await withTaskGroup(of: Void.self) { race in
            race.addTask { await supervisor.drain() }
            race.addTask {
                await stop.second.wait()
                if stop.second.isOpen { await supervisor.kill() }
            }
            await race.next()
            race.cancelAll()
        }
    }

    /// Keeps sweeps from what the batch fetches as long as this run lives, also while no worker does. Where that cannot be said, the
    /// workers warn about the cache.
    /// * `asked`: when its status was asked for.
    private func protect(_ status: BatchStatus, asked: Double) -> CacheProtection? {
        guard let protection = try? CacheProtection(cache.disk) else { return nil }
        try? protection.set(since: asked - Double(max(0, status.at - status.created)) / 1000)
        return protection
    }

    private func reapAll(_ queue: PrefetchQueue, but own: Set<String>) async throws {
        for worker in try await queue.workers.names() where !own.contains(worker) {
            _ = try await queue.workers.reap(worker: worker, most: 1_000_000)
        }
    }
}

/// Runs a `run` command line, and leaves the exit code to its caller: the demo.
package enum VerifiedRun {
    /// * `words`: the arguments of `run`, `list` their list.
    /// * `judge`: prints its own summary of the ended batch, and returns the exit code.
    package static func run(
        _ words: [String], list: ListStream, workers: Int,
        judge: @escaping @Sendable (PrefetchQueue, BatchStatus) async throws -> Int32
    ) async throws {
        guard let command = try SettingWords.parse(RunCommand.self, words) as? RunCommand else { return }
        var batch = try command.batch.settings()
        let fetch = try command.workerSettings(&batch)
        let cache = try RunCache(command.cacheFolder, StateOption.folder(nil), fetch.prepareCache())
        try await BatchRun(
            command: command, cache: cache, list: list, batch: batch, fetch: fetch, workerCount: workers, report: judge
        ).run()
    }
}

/// The first error of another task.
final class Failure: Sendable {
    /// Opens when there is one.
    let noted = Latch()
    private let first = Locked<PrefetchError?>(nil)

    /// The first one.
    var error: PrefetchError? { first.withLock { $0 } }

    /// Notes one.
    func note(_ error: PrefetchError) {
        first.withLock { if $0 == nil { $0 = error } }
        noted.open()
    }
}

// MARK: - Finishing

extension BatchRun {
    /// Writes the reports, prints the summary, and returns the exit code.
    private func finish(_ queue: PrefetchQueue, _ status: BatchStatus, _ stop: StopRequest) async throws -> Int32 {
        if let report { return try await report(queue, status) }
        let failure = await write(queue, status.id, stop)
        if settings.json {
            // With the shards that were written since.
            Console.print(BatchAnswer(try await queue.batches.status(of: status.id) ?? status).line)
        } else if settings.verbosity > .silent {
            for line in BatchText.summary(status) { Console.print(line) }
            let chain = try await BatchChain.read(status.id, queue: queue)
            if let line = BatchText.merged(chain, seenFrom: status.id) { Console.print(line) }
            if settings.verbosity > .quiet {
                Console.print("")
                for line in commands(status) { Console.print(line) }
            }
        }
        if let failure { throw failure }
        return BatchExit.code(status, allowed: settings.allowFailures)
    }

    /// The end of a retry for which there was nothing to do.
    private func finishWithoutWork(
        _ queue: PrefetchQueue, _ newest: BatchStatus, _ stop: StopRequest
    ) async throws -> Int32 {
        Console.note(BatchText.nothingSkipped(newest))
        if let failure = await write(queue, newest.id, stop) { throw failure }
        if settings.json { Console.print(BatchAnswer(newest).line) }
        return 0
    }

    /// Writes the manifest and the folder of files; a signal stops it. Returns what went wrong, with the command that does it later.
    private func write(_ queue: PrefetchQueue, _ id: String, _ stop: StopRequest) async -> PrefetchError? {
        for target in settings.outputs {
            let error = await withTaskGroup(of: PrefetchError?.self) { group in
                group.addTask {
                    do throws(PrefetchError) {
                        try await output(queue).write(id, to: target)
                        return nil
                    } catch {
                        return error
                    }
                }
                group.addTask {
                    await stop.first.wait()
                    return PrefetchError(.stopped, "stopped before everything was written")
                }
                let first = await group.next() ?? nil
                group.cancelAll()
                return first
            }
            guard var error else { continue }
            if error.kind != .stopped { error.kind = .inputOutput }
            let later = "the batch is over and its images are there; write it later: \(command(id, target))"
            error.hint = error.hint.isEmpty ? later : "\(error.hint); \(later)"
            return error
        }
        return nil
    }

    /// The `export` that writes a target.
    private func command(_ id: String, _ target: BatchOutput.Target) -> String {
        "\(Shell.program) export \(TerminalText.escaped(id)) \(settings.location)\(settings.fetch.readOnlyWords) \(target.words)"
    }

    /// Commands that work as printed.
    private func commands(_ status: BatchStatus) -> [String] {
        let cache = "--cache \(Shell.quoted(Shell.path(settings.cache)))"
        let rule =
            status.options.cacheKey == .url ? "" : " --cache-key \(Shell.quoted(status.options.cacheKey.description))"
        let readOnly = settings.fetch.readOnlyWords
        let id = TerminalText.escaped(status.id)
        var lines: [String] = []
        if status.counts.skipped > 0 {
            lines.append("failed URLs:    \(Shell.program) failures \(id) \(settings.location)")
        }
        if settings.outputs.contains(where: \.isFolder) { return lines }
        lines.append(
            "named files:    \(Shell.program) export \(id) --format files --out ./images \(settings.location)\(readOnly)"
        )
        // A URL's own key is that of its original.
        guard status.options.storedVariant == nil else {
            return lines + [
                "url -> path:    \(Shell.program) export \(id) --format jsonl \(settings.location)\(readOnly)"
            ]
        }
        return lines + [
            "path of a URL:  \(Shell.program) cache path URL \(cache)\(rule)\(readOnly)"
        ]
    }
}
