internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord pause`: stops new downloads of a batch, the queue or one worker.
struct PauseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Pause a batch, the whole queue or one worker.",
        usage: "prefetch-coord pause [<batch>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord pause urls-7f3a --cache ./cache
              prefetch-coord pause --all --redis redis://host:6379/0
              prefetch-coord pause --worker host:4711

            New requests stop within two seconds. Transfers in flight finish and count;
            jobs that were taken and not started go back. A pause lasts until resume.
            """)

    @OptionGroup var target: PauseArguments
    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func run() async throws {
        try await Session.with(location.record) { session in
            let queue = session.queue
            let meant = try await target.resolve(queue, "pause", location.words)
            let resume = "\(Shell.program) resume \(target.words(meant))\(location.words)"
            switch try await queue.control.pause(meant) {
            case .gone: throw PauseArguments.gone(meant)
            case .over(let state): Console.print("\(PauseArguments.name(meant)) is \(state) already")
            case .done(let isNew):
                let name = PauseArguments.name(meant)
                let far = try await PauseText.subject(meant, queue)
                Console.print(isNew ? "paused \(far)" : "\(name) is paused already")
                Console.note("transfers in flight finish; resume with: \(resume)")
            }
        }
    }
}

/// `prefetch-coord resume`: the end of a pause.
struct ResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Resume a batch, the whole queue or one worker.",
        usage: "prefetch-coord resume [<batch>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord resume urls-7f3a --cache ./cache
              prefetch-coord resume --all

            Pauses are independent: --all resumes the queue, and a batch or a worker that
            was paused as well stays paused. submit --resume continues to queue a list.
            """)

    @OptionGroup var target: PauseArguments
    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func run() async throws {
        try await Session.with(location.record) { session in
            let queue = session.queue
            let meant = try await target.resolve(queue, "resume", location.words)
            switch try await queue.control.resume(meant) {
            case .gone: throw PauseArguments.gone(meant)
            case .over(let state): Console.print("\(PauseArguments.name(meant)) is \(state) already")
            case .done(let wasPaused):
                let name = PauseArguments.name(meant)
                let far = try await PauseText.subject(meant, queue)
                Console.print(wasPaused ? "resumed \(far)" : "\(name) is not paused")
                for line in try await PauseText.others(meant, queue, location.words) { Console.note(line) }
            }
        }
    }
}

/// What `pause` and `resume` are about: one batch, the queue or one worker.
struct PauseArguments: ParsableArguments {
    @Argument(help: "Batch, or the beginning of its name. (default: the newest)", completion: .batch)
    var batch: String?

    @Flag(help: "The whole queue.")
    var all = false

    @Option(help: .name("One worker, by its name or the beginning of it."))
    var worker: String?

    func validate() throws {
        let count = (batch == nil ? 0 : 1) + (all ? 1 : 0) + (worker == nil ? 0 : 1)
        if count > 1 { throw ValidationError("give one of: a batch, --all, --worker") }
        if worker?.isEmpty == true { throw ValidationError("--worker needs a name: prefetch-coord workers lists them") }
    }

    /// * `command`, `words`: as of ``MeantBatch``.
    func resolve(
        _ queue: PrefetchQueue, _ command: String, _ words: String
    ) async throws(PrefetchError) -> QueueControl.PauseTarget {
        if all { return .queue }
        if let worker { return .worker(try await queue.workerRecords.resolve(worker)) }
        return .batch(try await MeantBatch.resolve(batch, command, words, in: queue))
    }

    /// The target as it has to be typed.
    func words(_ target: QueueControl.PauseTarget) -> String {
        switch target {
        case .queue: "--all"
        case .batch(let id): TerminalText.escaped(id)
        case .worker(let name): "--worker \(Shell.quoted(name))"
        }
    }

    static func name(_ target: QueueControl.PauseTarget) -> String {
        switch target {
        case .queue: "the queue"
        case .batch(let id): TerminalText.escaped(id)
        case .worker(let name): "worker \(TerminalText.escaped(name))"
        }
    }

    /// It was there a moment ago.
    static func gone(_ target: QueueControl.PauseTarget) -> PrefetchError {
        PrefetchError(.notFound, "\(name(target)) is gone", hint: "see what is there: prefetch-coord status")
    }
}

/// Pauses in words.
private enum PauseText {
    /// The paused thing, and its progress.
    static func subject(_ target: QueueControl.PauseTarget, _ queue: PrefetchQueue) async throws -> String {
        switch target {
        case .queue:
            let batches = try await queue.catalog.running().count
            let workers = try await queue.workers.names().count
            return
                "the queue '\(queue.catalog.queueName)' with \(Wording.count(batches, "running batch", "running batches")) "
                + "and \(Wording.count(workers, "worker"))"
        case .batch(let id):
            guard let status = try await queue.batches.status(of: id) else { return id }
            let counts = status.counts
            return "\(TerminalText.escaped(id)) at \(status.shareText ?? "-"), "
                + "\(Wording.count(counts.finished)) of \(status.totalText) finished"
        case .worker:
            return PauseArguments.name(target)
        }
    }

    /// Other pauses that still apply.
    static func others(
        _ target: QueueControl.PauseTarget, _ queue: PrefetchQueue, _ words: String
    ) async throws -> [String] {
        var lines: [String] = []
        let snapshot = try await queue.views.snapshot(newest: 0)
        if target != .queue, snapshot.settings.isPaused {
            lines.append("the queue is paused; resume it: prefetch-coord resume --all\(words)")
        }
        let paused = try await queue.batches.statuses(of: try await queue.catalog.running()).filter(\.isPaused).map(
            \.id)
        if target == .queue, !paused.isEmpty { lines.append("paused by themselves: \(named(paused))") }
        let idle = snapshot.workers.filter(\.value.report.isPaused).keys.sorted()
        if !idle.isEmpty, idle.count == snapshot.workers.count {
            lines.append(
                "every worker is paused: \(named(idle)); resume one: prefetch-coord resume --worker NAME\(words)")
        } else if target == .queue, !idle.isEmpty {
            lines.append("paused by themselves: worker \(named(idle))")
        }
        return lines
    }

    private static func named(_ names: [String]) -> String {
        let shown = names.prefix(5).map(TerminalText.escaped).joined(separator: ", ")
        return names.count > 5 ? "\(shown) and \(Wording.count(names.count - 5)) more" : shown
    }
}
