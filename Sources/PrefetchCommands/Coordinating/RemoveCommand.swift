internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord rm`: removes finished batches from Redis.
struct RemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Remove finished batches from Redis; their images stay.",
        usage: "prefetch-coord rm <batch> ... [<options>]",
        discussion: """
            Examples:
              prefetch-coord rm urls-7f3a --cache ./cache
              prefetch-coord rm urls-7f3a urls-7f3a.2 --yes
              prefetch-coord rm urls-7f3a --force
              prefetch-coord rm --orphans

            Redis drops finished batches after 7 days anyway (--keep). Cancel a running
            batch first, and remove a retry together with the batch it retries. --force
            also removes a running batch, and what is left of one that Redis half lost.
            --orphans removes what runs have kept of caches that are gone.
            """)

    @Argument(help: .value("batch", "Batches, or the beginnings of their names."), completion: .batch)
    var batches: [String] = []

    @Flag(help: "Also remove batches that run, and what is left of one that Redis half lost.")
    var force = false

    @Flag(help: "Remove the state of runs whose cache is gone: batches, results, copies of lists.")
    var orphans = false

    @OptionGroup var confirmation: Confirmation
    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func validate() throws {
        if orphans != batches.isEmpty { throw ValidationError("rm takes batches, or --orphans") }
    }

    func run() async throws {
        if orphans { return try removeOrphans() }
        try await Session.with(location.record) { session in
            let queue = session.queue
            var ids: Set<String> = []
            for name in batches {
                ids.insert(force ? try await queue.resolveBroken(name) : try await queue.catalog.resolve(name))
            }
            // Newest first: a retry is younger than what it retries.
            let found = try await queue.batches.statuses(of: ids.sorted()).sorted {
                ($0.created, $0.id) > ($1.created, $1.id)
            }
            for status in found {
                if status.state == .running, !force { throw Self.running(status.id) }
                if let retry = status.retriedBy, !ids.contains(retry) { throw Self.retried(status.id, by: retry) }
            }
            // Redis has no status of these, or not all of it.
            let broken = force ? ids.subtracting(found.map(\.id)).sorted() : []
            let names = (found.map(\.id) + broken).map(TerminalText.escaped).joined(separator: ", ")
            try confirmation.ask(
                "remove \(names) from Redis, with what was skipped and why, and leave the images", "rm")
            for id in found.map(\.id) + broken {
                switch try await queue.batches.remove(batch: id, force: force) {
                case .removed, .gone: Console.print("removed \(TerminalText.escaped(id))")
                case .running: throw Self.running(id)
                case .retriedBy(let retry): throw Self.retried(id, by: retry)
                }
            }
        }
    }

    private func removeOrphans() throws {
        let states = location.stateFolder
        let gone = try states.entries().filter(\.isOrphan)
        guard !gone.isEmpty else { return Console.print("no cache is gone whose runs have kept something") }
        for entry in gone {
            Console.note("\(StateText.cache(entry)): \(Wording.bytes(entry.size))")
        }
        try confirmation.ask(
            "remove what runs have kept of \(Wording.count(gone.count, "cache")) that are not there", "rm")
        for entry in gone {
            Console.print(
                try states.remove(entry)
                    ? "removed the state of \(StateText.cache(entry))"
                    : "left the state of \(StateText.cache(entry)), whose Redis is running")
        }
    }

    private static func running(_ id: String) -> PrefetchError {
        PrefetchError(
            .configuration, "\(id) is running and was not removed", hint: "cancel it first: prefetch-coord cancel \(id)"
        )
    }

    private static func retried(_ id: String, by retry: String) -> PrefetchError {
        PrefetchError(
            .configuration, "\(retry) retries what \(id) skipped, so \(id) was not removed",
            hint: "remove both: prefetch-coord rm \(id) \(retry)")
    }
}
