internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// `prefetch-coord watch`: follows a batch to its end.
struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Follow a batch to its end, as live lines or JSON events.",
        usage: "prefetch-coord watch [<batch>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord watch --cache ./cache
              prefetch-coord watch urls-7f3a --json --from-start | jq -c .

            Ctrl-C ends the command, not the batch. Exit code: 0 every image that was
            wanted is there, 3 some URLs failed or there is no image, 4 cancelled, 130
            stopped by Ctrl-C.
            """)

    @Argument(help: "Batch, or the beginning of its name. (default: the newest)", completion: .batch)
    var batch: String?

    @Flag(help: "Print events, one JSON object per line: progress, didPrefetchURL, didFinish, completion.")
    var json = false

    @Flag(help: "With --json: begin with the first URL of the batch instead of the current counts.")
    var fromStart = false

    @Option(
        help: .share("Exit with 0 even if this many URLs failed; see --max-failures."))
    var allowFailures: PrefetchSettings.Share?

    @OptionGroup(title: "Output") var progress: ProgressArguments
    @OptionGroup(title: "Output") var secrets: SecretOptions
    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func validate() throws {
        guard json || !fromStart else { throw ValidationError("--from-start goes with --json") }
        if json, let mode = progress.progress, mode != .none {
            throw ValidationError(
                "--json has its events on standard output; --progress \(mode.rawValue) goes without it")
        }
    }

    func run() async throws {
        if !json, progress.mode(.normal) == .json { Console.noteAsJSON() }
        try await Session.with(location.record) { session in
            let stop = StopRequest()
            let signal = Locked<Int32>(0)
            TerminationSignals.install { number, count in
                signal.withLock { if $0 == 0 { $0 = number } }
                stop.request(signal: number, count: count)
            }
            let id = try await MeantBatch.resolve(batch, "watch", location.words, in: session.queue)
            let end = try await session.untilStopped(stop) {
                json ? try await events(of: id, session) : try await counts(of: id, session)
            }
            // The reader of the events is gone, or they cannot be written: CommandRunner reports that.
            if Console.isOutputClosed || Console.outputError != nil || !Console.hasReader { return }
            guard let end else {
                Console.noteRunning(id, "watch", location.words)
                let number = signal.withLock { $0 }
                throw ExitCode(TerminationSignals.exitCode(number))
            }
            if !json { summary(end) }
            let code = BatchExit.code(end, allowed: allowFailures)
            if code != 0, Console.outputError == nil { throw ExitCode(code) }
        }
    }

    private func counts(of id: String, _ session: Session) async throws -> BatchStatus? {
        try await BatchFollower(
            queue: session.queue, id: id, mode: progress.mode(.normal),
            allowNetHint: { "start the workers with --allow-net \(BatchRun.address($0))" }, waitLimit: nil,
            saysPresent: true, isColoured: progress.isColoured
        ).follow()
    }

    private func summary(_ status: BatchStatus) {
        for line in BatchText.summary(status) { Console.print(line) }
        guard status.counts.skipped > 0 else { return }
        Console.print("")
        Console.print(
            "failed URLs:  \(Shell.program) failures \(TerminalText.escaped(status.id))\(location.words)")
    }

    /// Prints events as they come; several that come together in one write.
    private func events(of id: String, _ session: Session) async throws -> BatchStatus? {
        let following = BatchEventReader(
            queue: session.queue, batch: id, from: fromStart ? .beginning : .present,
            notice: BatchFollower.tell)
        var text: [UInt8] = []
        while let events = try await following.next() {
            for event in events {
                text += EventAnswer(event).json.text.utf8
                text.append(UInt8(ascii: "\n"))
                if text.count > 1 << 15 { Self.flush(&text) }
            }
            Self.flush(&text)
            if await following.hasEnded { return await following.status }
            if Console.isOutputClosed || Console.outputError != nil || !Console.hasReader { return nil }
        }
        return nil
    }

    private static func flush(_ text: inout [UInt8]) {
        if !text.isEmpty { Console.print(text) }
        text.removeAll(keepingCapacity: true)
    }
}
