internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// `prefetch-coord repair`: rebuilds what Redis has lost.
struct RepairCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "repair",
        abstract: "Rebuild what Redis lost of a batch: jobs, counts, or all of it.",
        usage: "prefetch-coord repair [<batch>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord repair urls-7f3a --cache ./cache
              prefetch-coord repair --list urls.txt --redis redis://host:6379/0

            Open URLs that are in no job are pushed again, counts become what the outcomes
            say, what is no job leaves the lists. Workers may go on meanwhile. A batch that
            Redis knows no more is made again from its list; images that are in the cache
            end as hit.
            """)

    @Argument(help: "A batch, or the beginning of its name; all by default.")
    var batch: String?

    @Option(help: "The list, where it is elsewhere now, or where Redis knows its batch no more.", completion: .file())
    var list: String?

    @Flag(help: "Say what is wrong, and change nothing.")
    var dryRun = false

    @OptionGroup(title: "Lists") var empty: EmptyListOptions
    @OptionGroup(title: "Where") var location: RedisLocation

    func run() async throws {
        let list = try GivenList.repeatable(list)
        let urls: URLList? = if let list { try URLList(path: list) } else { nil }
        // With --cache alone the private Redis of that folder is made where it is missing.
        if urls != nil, !dryRun, case .cache(let folder) = try location.place() {
            _ = try CacheOpening.forWriting(folder)
        }
        try await Session.with(location) { session in
            let told = Lines()
            // First: what tells which batches there are may be what is wrong.
            if !dryRun { for line in try await QueueRepair(queue: session.queue).run() { told.say(line) } }
            let (ids, new) = try await meant(session.queue, urls)
            if dryRun { return try await tellOnly(ids, new, session.queue, urls) }
            for id in ids {
                let repair = BatchRepair(queue: session.queue, batch: id, listPath: list) { told.say($0) }
                guard try await repair.run() else {
                    guard let urls else { throw Self.unknown(id) }
                    try await make(id, urls, session.queue, told)
                    continue
                }
            }
            if let new, let urls { try await make(new, urls, session.queue, told) }
            if told.count == 0 {
                Console.print("nothing to repair: \(Wording.count(ids.count, "batch", "batches")), everything agrees")
            }
        }
    }

    /// The batches that Redis has, and the one it knows no more.
    private func meant(_ queue: PrefetchQueue, _ urls: URLList?) async throws -> (ids: [String], new: String?) {
        guard let urls else {
            return (
                batch == nil ? try await queue.keySpace.everyBatch() : [try await queue.catalog.resolve(batch)], nil
            )
        }
        let known = try await queue.catalog.ids()
        let usual = urls.usualBatchID
        guard let batch else {
            let same = try await queue.catalog.newest(ofList: urls.hash)
            if let found = same.running ?? same.newest { return ([found.id], nil) }
            return known.contains(usual) ? ([usual], nil) : ([], usual)
        }
        if known.contains(batch) || known.contains(where: { $0.hasPrefix(batch) }) {
            return ([try await queue.catalog.resolve(batch)], nil)
        }
        guard PrefetchQueue.isValidBatchID(batch) else {
            throw PrefetchError(
                .configuration, "'\(batch)' can be no batch", hint: "a name is 1 to 64 letters, digits, '.', '_' or '-'"
            )
        }
        // With a part of the hash it is the beginning of the usual name; without one it may be a name of its own.
        return ([], batch.hasPrefix(urls.stem + "-") && usual.hasPrefix(batch) ? usual : batch)
    }

    /// Makes a batch again that Redis knows no more, and feeds it.
    private func make(_ id: String, _ urls: URLList, _ queue: PrefetchQueue, _ told: Lines) async throws {
        try empty.check(urls.total, of: ListFile.name(of: list ?? urls.path))
        var urls = urls
        // The batch names the file of its list, which has to be there when this command is not.
        if ListFile.isStream(urls.path) {
            urls = try URLList(path: try GivenList.copy(urls.path, cache: location.cacheFolder))
        }
        var batch = NewBatch(list: urls)
        batch.name = id
        // What is left of it without its hash would be the new one's.
        do throws(RedisError) { _ = try await queue.batches.remove(batch: id) } catch { throw PrefetchError(error) }
        let opened = try await batch.open(in: queue)
        told.say(
            "made \(opened.id) again from \(TerminalText.escaped(urls.path)) with \(Wording.count(urls.total)) URLs and the "
                + "default options (\(Self.words(batch.options))); for others: prefetch-coord cancel \(opened.id), then submit"
        )
        let end = try await ListFeeder(queue: queue, list: urls, batch: opened.id).feed(waiting: { wait in
            for line in FeedingText.lines(wait) { Console.note(line) }
        })
        if case .closed(let state) = end, state != "done" {
            throw PrefetchError(.notFound, "\(id) was \(state) while it was fed", hint: "repair it again")
        }
        told.say("queued \(Wording.count(urls.total)) URLs as \(opened.id)")
    }

    private static func words(_ options: BatchOptions) -> String {
        "--validate \(options.validate) --unverifiable \(options.unverifiable.rawValue) --digest \(options.digest) --durability \(options.durability) "
            + "--blacklist \(options.blacklist) --cache-key \(options.cacheKey)"
            + (options.maxPerHost.map { " --max-per-host \($0)" } ?? "")
    }

    private func tellOnly(_ ids: [String], _ new: String?, _ queue: PrefetchQueue, _ urls: URLList?) async throws {
        var findings = try await QueueCheck(queue: queue).run()
        for id in ids { findings += try await BatchCheck(queue: queue, batch: id).run() }
        for finding in findings { Console.print("would mend \(FsckText.line(finding))") }
        if let new, let urls {
            Console.print(
                "would make \(new) again from \(TerminalText.escaped(urls.path)) with \(Wording.count(urls.total)) URLs"
            )
        } else if findings.isEmpty {
            Console.print("nothing to repair: \(Wording.count(ids.count, "batch", "batches")), everything agrees")
        }
    }

    private static func unknown(_ id: String) -> PrefetchError {
        PrefetchError(
            .notFound, "Redis knows the batch \(id) no more",
            hint: "make it again from its list: prefetch-coord repair \(id) --list FILE")
    }

    /// What was done, a line each.
    private final class Lines: Sendable {
        private let said = Locked(0)

        var count: Int { said.withLock { $0 } }

        func say(_ line: String) {
            said.withLock { $0 += 1 }
            Console.print(TerminalText.escaped(line))
        }
    }
}
