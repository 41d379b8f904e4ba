internal import Glibc
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

extension BatchRun {
    /// The end of a batch: what was to be written, the summary, and the exit code.
    func finish(_ queue: PrefetchQueue, _ id: String, _ stop: StopRequest) async throws -> Int32 {
        guard let status = try await queue.status(of: id) else {
            throw PrefetchError(.notFound, "Redis knows the batch \(id) no more", hint: "run it again")
        }
        if let report { return try await report(queue, status) }
        let failure = await write(queue, id, stop)
        if settings.json {
            Console.print(BatchJSON.object(status).text)
        } else {
            for line in BatchText.summary(status) { Console.print(line) }
            let chain = try await BatchChain.read(id, queue: queue)
            if let line = BatchText.merged(chain, seenFrom: id) { Console.print(line) }
            Console.print("")
            for line in commands(status) { Console.print(line) }
        }
        if let failure { throw failure }
        return BatchExit.code(status, allowed: settings.failOver)
    }

    /// The end of a retry for which there was nothing to do.
    func finishWithoutWork(_ queue: PrefetchQueue, _ newest: BatchStatus, _ stop: StopRequest) async throws -> Int32 {
        Console.note(BatchText.nothingSkipped(newest))
        if let failure = await write(queue, newest.id, stop) { throw failure }
        if settings.json { Console.print(BatchJSON.object(newest).text) }
        return 0
    }

    /// Writes the manifest and the folder of files; a signal stops it. Returns what went wrong, with the command that does it later.
    private func write(_ queue: PrefetchQueue, _ id: String, _ stop: StopRequest) async -> PrefetchError? {
        for target in settings.outputs {
            let error = await withTaskGroup(of: PrefetchError?.self) { group in
                group.addTask {
                    do throws(PrefetchError) {
                        try await BatchOutput(
                            queue: queue, cache: settings.cache,
                            readOnly: settings.fetch.cacheLimits.readOnly.directories, listPath: listPath
                        ).write(id, to: target)
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
            error.hint = "the batch is over and its images are there; write it later: \(command(id, target))"
            return error
        }
        return nil
    }

    private var listPath: String? {
        if case .skipped(_, let list, _) = source { list } else { nil }
    }

    /// The `export` that writes a target.
    private func command(_ id: String, _ target: BatchOutput.Target) -> String {
        "\(Shell.program) export \(TerminalText.escaped(id)) \(settings.location)\(settings.fetch.cacheLimits.readOnly.words) \(target.words)"
    }

    /// Three commands that work as printed.
    private func commands(_ status: BatchStatus) -> [String] {
        let folder = Shell.quoted(Shell.path(settings.cache + "/v1"))
        let cache = "--cache \(Shell.quoted(Shell.path(settings.cache)))"
        let rule = status.options.cacheKey == "url" ? "" : " --cache-key \(Shell.quoted(status.options.cacheKey))"
        return [
            "where the files are:  ls -R \(folder)",
            "URL -> path:          \(Shell.program) cache path URL \(cache)\(rule)\(settings.fetch.cacheLimits.readOnly.words)",
            status.counts.skipped > 0
                ? "what was skipped:     \(Shell.program) failures \(TerminalText.escaped(status.id)) \(settings.location)"
                : "check every file:     \(Shell.program) cache verify \(cache)",
        ]
    }
}
