internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import Prefetch
internal import Redis
internal import Threading

struct DashCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dash",
        abstract: "Show a full-screen dashboard of a batch.",
        usage: "prefetch-coord dash [<batch>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord dash --cache ./cache
              prefetch-coord dash urls-7f3a --once --size 80x24

            ? lists the keys; q quits, and the batch continues. Without a terminal use
            watch, status or --once.
            """)

    @Argument(help: "Batch, or the beginning of its name. (default: the newest)", completion: .batch)
    var batch: String?

    @Option(help: .time("Time between two updates, 0.2s to 60s."))
    var refresh = TimeSpan(seconds: 0.5)

    @Flag(help: "Disable the keys that change something.")
    var readonly = false

    @Flag(help: "Print one frame and exit; needs no terminal.")
    var once = false

    @Option(help: .value("WxH", "With --once: columns and rows. (default: 80x24)"))
    var size: FrameSize?

    @OptionGroup(title: "Output") var secrets: SecretOptions
    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func validate() throws {
        guard (0.2...60).contains(refresh.seconds) else {
            throw ValidationError("--refresh is a time from 0.2s to 60s")
        }
        if size != nil && !once { throw ValidationError("--size goes with --once: a terminal has its own size") }
    }

    private var terminalName: String { ProcessInfo.processInfo.environment["TERM"] ?? "" }

    func run() async throws {
        guard once || DashTerminal.isThere else {
            throw PrefetchError(
                .configuration,
                isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1
                    ? "dash needs a terminal that moves the cursor, and TERM is '\(TerminalText.escaped(terminalName))'"
                    : "dash needs a terminal, and standard input and output are not one",
                hint: "for a file or a pipe: prefetch-coord watch, prefetch-coord status, or dash --once")
        }
        try await Session.with(location.record) { session in
            var state = DashState()
            if batch != nil { state.id = try await session.queue.catalog.resolve(batch) }
            state.refresh = refresh.seconds
            state.isReadOnly = readonly
            state.place = Self.place(session.redis.redactedURL)
            let glyphs = DashGlyphs(isUnicode: Terminal.isUnicode)
            let isColoured = Colours.areOn(STDOUT_FILENO)
            if once {
                if batch == nil, let id = try? await session.queue.catalog.resolve(nil) {
                    try await MeantBatch.tell(id, "dash --once", location.words, session.queue)
                }
                let reader = DashReader(session.queue)
                state.take(try await reader.read(DashReader.ReadingRequest(id: state.id)))
                let size = size ?? FrameSize(columns: 80, rows: 24)
                let frame = DashFrame(
                    state: state, columns: size.columns, rows: size.rows, glyphs: glyphs, clock: Self.clock)
                // Bold and reverse only on terminals, colours also on request.
                let isStyled = isColoured || isatty(STDOUT_FILENO) == 1 && Terminal.isObedient
                for line in frame.lines() { Console.print(isStyled ? line.painted(isColoured: isColoured) : line.text) }
                return
            }
            let loop = DashLoop(
                session: session, terminal: DashTerminal(), isColoured: isColoured, clock: Self.clock, glyphs: glyphs)
            let end = await loop.run(state)
            if let status = end.state.snapshot?.status, status.state == .running {
                Console.noteRunning(status.id, "dash", location.words)
            }
            if let signal = end.signal { throw ExitCode(TerminationSignals.exitCode(signal)) }
        }
    }

    private static func place(_ url: String) -> String {
        guard url.hasPrefix("unix:") else { return url.replacing("redis://", with: "redis ") }
        return "redis unix"
    }

    /// 12:41:07, local time.
    @Sendable private static func clock(_ milliseconds: Int) -> String {
        UTCTime.clock(seconds: milliseconds / 1000)
    }
}

/// `120x40` on the command line.
struct FrameSize: ExpressibleByArgument, Sendable {
    var columns: Int, rows: Int

    init(columns: Int, rows: Int) { (self.columns, self.rows) = (columns, rows) }

    init?(argument: String) {
        let parts = argument.split(separator: "x", omittingEmptySubsequences: false).compactMap { Int($0) }
        guard parts.count == 2, (1...1_000).contains(parts[0]), (1...1_000).contains(parts[1]) else { return nil }
        self.init(columns: parts[0], rows: parts[1])
    }
}
