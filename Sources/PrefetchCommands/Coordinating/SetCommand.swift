internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord set`: what can be changed while a batch runs.
struct SetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Change settings of a running batch, or the transfers of workers.",
        usage: "prefetch-coord set <batch> | --worker <name> | --all <options>",
        discussion: """
            Examples:
              prefetch-coord set urls-7f3a --priority high --cache ./cache
              prefetch-coord set urls-7f3a --rate-per-host 2 --max-per-host 1
              prefetch-coord set --all --max-concurrent-downloads 8
              prefetch-coord set --worker host:4711 --max-concurrent-downloads auto
              prefetch-coord set --all --default

            Of 16 URLs, batches of high priority get 11, normal 4 and low 1; those without
            URLs leave theirs to the others. A deadline counts from now on. Workers take up
            what changes within two seconds; transfers in flight finish as they began.

            Workers have --max-concurrent-downloads and --default. --all also holds for
            workers that join later and replaces the settings of single workers.
            """)

    @Argument(help: "Batch, or the beginning of its name.", completion: .batch)
    var batch: String?

    @Option(help: .name("One worker, by its name or the beginning of it."))
    var worker: String?

    @Flag(help: "All workers of the queue, including those that join later.")
    var all = false

    @OptionGroup var changes: SettingOptions<LiveBatch>
    @OptionGroup var workers: SettingOptions<LiveWorker>

    @Flag(
        name: .customLong("default"),
        help: "Reset to the startup value; one worker: to the value of --all, if set.")
    var isDefault = false

    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func validate() throws {
        guard (batch == nil ? 0 : 1) + (worker == nil ? 0 : 1) + (all ? 1 : 0) == 1 else {
            throw ValidationError("give one of: a batch, --worker NAME, --all")
        }
        let (isOfBatch, isOfWorkers) = (!changes.given.isEmpty, !workers.given.isEmpty || isDefault)
        guard batch == nil else {
            guard isOfBatch, !isOfWorkers else {
                throw ValidationError(
                    "set a batch with \(LiveBatch.settings.map(\.about.flag).joined(separator: ", ")), and nothing else"
                )
            }
            return
        }
        if worker?.isEmpty == true {
            throw ValidationError("the name of a worker is empty: prefetch-coord workers has them")
        }
        guard !isOfBatch, workers.given.isEmpty == isDefault else {
            throw ValidationError("set workers with --max-concurrent-downloads N|auto or --default, and nothing else")
        }
    }

    func run() async throws {
        try await Session.with(location.record) { session in
            if let batch { try await setBatch(batch, session.queue) } else { try await setWorkers(session.queue) }
        }
    }

    private func setBatch(_ name: String, _ queue: PrefetchQueue) async throws {
        let id = try await queue.catalog.resolve(name)
        switch try await queue.control.change(id, changes.givenWords) {
        case .gone: throw PauseArguments.gone(.batch(id))
        case .over(let state): Console.print("\(TerminalText.escaped(id)) is \(state) already")
        case .changed(let before, let now):
            let parts = LiveBatch.settings.filter { changes.given.contains($0.name) }.map { row in
                let (value, was) = (row.shown(now), row.shown(before))
                return "\(row.about.flag.dropFirst(2)) \(value)" + (value == was ? "" : ", was \(was)")
            }
            Console.print(([TerminalText.escaped(id)] + parts).joined(separator: "  "))
        }
    }

    private func setWorkers(_ queue: PrefetchQueue) async throws {
        var name: String?
        if let worker { name = try await queue.workerRecords.resolve(worker) }
        let wanted = isDefault ? nil : workers.record.maxConcurrentDownloads
        let told = try await queue.control.setConcurrency(wanted, worker: name)
        if let name, told == 0 { throw PauseArguments.gone(.worker(name)) }
        let count = wanted.map { setting in
            setting.count.map { "at most \(Wording.count($0, "transfer")) in flight" }
                ?? "auto: finds its number of transfers"
        }
        if let name {
            let fallback = try await queue.views.snapshot(newest: 0).settings.concurrency
            let before = fallback.map { "\($0) at once, as set with --all" } ?? "as at its start"
            Console.print("worker \(TerminalText.escaped(name)): \(count ?? before)")
        } else {
            let who = "all workers of queue '\(queue.catalog.queueName)'"
            Console.print("\(who): \(count.map { "\($0) each" } ?? "as they were started")")
            if told == 0 { Console.note("no worker is there now; those that come will keep to it") }
        }
    }
}
