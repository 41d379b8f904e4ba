internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// One `run` from its Redis to its exit code.
struct BatchRun: Sendable {
    let command: RunCommand
    let list: URLList
    let workerCount: Int

    func run() async throws {
        let lock = try RunLock.acquire(cache: command.cache)
        let attachment = try await PrivateRedis.attach(cache: command.cache)
        let session = try await Session(attachment: attachment, queue: "default")
        do {
            let code = try await run(session, isAlone: lock.isAlone)
            await session.close()
            if code != 0 { throw ExitCode(code) }
        } catch {
            await session.close()
            throw error
        }
    }

    private func run(_ session: Session, isAlone: Bool) async throws -> Int32 {
        let queue = session.queue
        // Nobody else runs on this cache, so whoever is registered is dead: what an earlier run left is free at once.
        if isAlone { try await reapAll(queue) }
        let submission = BatchSubmission(queue: queue, list: list, arguments: command.batch)
        let id = try await continued(queue) ?? (try await submission.open())
        if list.total == 0 {
            _ = try await submission.feed(id)
            return try await finish(queue, id)
        }
        let stop = StopRequest()
        let supervisor = WorkerSupervisor(
            count: workerCount, executable: nil, arguments: { arguments(session, worker: $0) },
            progress: { (try? await queue.status(of: id))??.counts.finished ?? 0 },
            onDeath: { pid, how in
                Console.note("\(ProgressLines.clock) worker \(Session.hostName):\(pid) \(how); its URLs go to the others")
                _ = try? await queue.reap(worker: "\(Session.hostName):\(pid)", most: 1_000_000)
            })
        let signals = TerminationSignals.install { signal, count in stop.request(signal: signal, count: count) }
        defer { signals.remove() }
        try await supervisor.start()
        let failure = await work(queue, id, submission, supervisor, stop)
        if let failure {
            await supervisor.kill()
            throw failure
        }
        await supervisor.drain()
        if let signal = stop.forced { return 128 + signal }
        let status = try await queue.status(of: id)
        if let status, status.state == .running {
            let finished = status.counts.finished
            throw PrefetchError(
                .stopped, "stopped at \(Wording.share(finished, of: status.total)): \(Wording.count(finished)) of "
                    + "\(Wording.count(status.total)) finished, nothing is lost",
                hint: "the same command again continues")
        }
        return try await finish(queue, id)
    }

    /// Feeds, follows and watches for signals until one of them ends the run.
    private func work(
        _ queue: PrefetchQueue, _ id: String, _ submission: BatchSubmission, _ supervisor: WorkerSupervisor,
        _ stop: StopRequest
    ) async -> PrefetchError? {
        let follower = BatchFollower(
            queue: queue, id: id, isQuiet: command.quiet, allowNetHint: "add --allow-net with its address or network")
        return await withTaskGroup(of: Result<Bool, PrefetchError>.self) { group in
            group.addTask {
                do throws(PrefetchError) {
                    _ = try await submission.feed(id)
                    // Feeding done is no end of the run.
                    return .success(false)
                } catch {
                    return error.kind == .stopped ? .success(false) : .failure(error)
                }
            }
            group.addTask {
                do throws(PrefetchError) {
                    return .success(try await follower.follow() != nil)
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                if let error = await supervisor.failure() { return .failure(error) }
                return .success(false)
            }
            group.addTask {
                await stop.first.wait()
                guard stop.first.isOpen else { return .success(false) }
                Console.note(
                    "finishing what is in flight, \(Int(command.fetch.drainTimeout.seconds)) s at most; Ctrl-C again stops now, "
                        + "nothing is lost")
                let drained = Task { await supervisor.drain() }
                await withTaskGroup(of: Void.self) { race in
                    race.addTask { await drained.value }
                    race.addTask { await stop.second.wait() }
                    await race.next()
                    if stop.second.isOpen { await supervisor.kill() }
                    race.cancelAll()
                }
                return .success(true)
            }
            defer { group.cancelAll() }
            for await result in group {
                switch result {
                case .success(true): return nil
                case .success(false): continue
                case .failure(let error): return error
                }
            }
            return nil
        }
    }

    /// The unfinished batch of this list, where its options are the same; says what differs otherwise.
    private func continued(_ queue: PrefetchQueue) async throws -> String? {
        guard let running = try await queue.batches(ofList: list.hash).running else { return nil }
        let differences = command.batch.options.differences(from: running.options)
        guard differences.isEmpty, command.batch.name == nil || command.batch.name == running.id else {
            Console.note(
                "note: \(running.id) of the same list is unfinished with other settings (\(differences.joined(separator: "; "))); "
                    + "this is a new batch")
            return nil
        }
        Console.note(
            "continuing \(running.id) at \(Wording.share(running.counts.finished, of: running.total)): "
                + "\(Wording.count(running.counts.finished)) of \(Wording.count(running.total)) finished")
        return running.id
    }

    private func reapAll(_ queue: PrefetchQueue) async throws {
        for worker in try await queue.workers() { _ = try await queue.reap(worker: worker, most: 1_000_000) }
    }

    private func arguments(_ session: Session, worker index: Int) -> [String] {
        var words = ["--redis", session.redis.socketURL, "--cache", command.cache, "--quiet"]
        if command.maxPerHost > 0 {
            // Each worker's share of the limit, at least 1.
            let share = command.maxPerHost / workerCount + (index < command.maxPerHost % workerCount ? 1 : 0)
            words += ["--max-per-host", String(max(1, share))]
        }
        return words + command.fetch.arguments
    }

    private func finish(_ queue: PrefetchQueue, _ id: String) async throws -> Int32 {
        guard let status = try await queue.status(of: id) else {
            throw PrefetchError(.notFound, "Redis knows the batch \(id) no more", hint: "run it again")
        }
        if command.json {
            Console.print(BatchJSON.object(status).text)
        } else {
            for line in BatchText.summary(status) { Console.print(line) }
            let cache = Shell.quoted(command.cache)
            Console.print("")
            Console.print("where the files are:  ls -R \(Shell.quoted(command.cache + "/v1"))")
            Console.print("URL -> path:          prefetch-coord cache path URL --cache \(cache)")
            if status.counts.skipped > 0 {
                Console.print("what was skipped:     prefetch-coord failures \(status.id) --cache \(cache)")
            } else {
                Console.print("check every file:     prefetch-coord cache verify --cache \(cache)")
            }
        }
        return BatchExit.code(status, allowed: command.failOver)
    }
}

/// What signals asked of a command.
final class StopRequest: Sendable {
    /// Opens with the first SIGINT or SIGTERM.
    let first = Latch()
    /// Opens with the second.
    let second = Latch()
    private let signal = Locked<Int32?>(nil)

    /// The signal that forced the end, where a second one came.
    var forced: Int32? { signal.withLock { $0 } }

    /// Notes a signal.
    func request(signal number: Int32, count: Int) {
        if count >= 2 {
            signal.withLock { $0 = number }
            second.open()
        }
        first.open()
    }
}

/// Words for a shell.
enum Shell {
    /// The word as it has to be typed.
    static func quoted(_ word: String) -> String {
        let plain = word.utf8.allSatisfy { byte in
            byte >= 0x80 || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) || (0x2B...0x3A).contains(byte) || byte == 0x5F
                || byte == 0x3D || byte == 0x40
        }
        return plain && !word.isEmpty ? word : "'" + word.replacing("'", with: "'\\''") + "'"
    }
}
