public import ArgumentParser
internal import CLinux
internal import FoundationEssentials
internal import Glibc
internal import Prefetch
internal import Redis
internal import WebImage

/// The start of both programs: parses, runs, and turns every error into two lines and an exit code of sysexits(3).
public enum CommandRunner {
    /// To be called before ``main(_:)``, while the process has one thread.
    ///
    /// libdispatch raises the priority of one of its threads, which nobody but root may do, and would tell the system's log so with each start
    /// of each program.
    public static func prepare() {
        setenv("LIBDISPATCH_LOG", "NO", 0)
        // What ps, pgrep and top call the process, also where no link has this name but a program that became this one.
        if let name = CommandLine.arguments.first?.split(separator: "/").last { clinux_set_thread_name(String(name)) }
    }

    /// Runs a program; does not return.
    public static func main(_ root: any AsyncParsableCommand.Type) async -> Never {
        signal(SIGPIPE, SIG_IGN)
        let words = Array(PathText.words(CommandLine.unsafeArgv, CommandLine.argc).dropFirst())
        exit(await run(words, of: root))
    }

    /// Runs a command line to its end.
    /// - Returns: the exit code.
    static func run(_ words: [String], of root: any AsyncParsableCommand.Type) async -> Int32 {
        if root == WorkerCommand.self, let worker = RunWorker(words) {
            return await code(of: root, words, root) { try await worker.run() }
        }
        if let unknown = Suggestion.forUnknown(words, of: root) {
            Console.error("there is no command '\(unknown.words)'", hint: unknown.hint)
            return 64
        }
        if let page = helpPage(words, of: root) {
            Console.print(Array((page.text + "\n").utf8))
            return 0
        }
        // Before anything is printed.
        if words.contains("--show-secrets") { ShownURL.showSecrets() }
        switch Verbosity(words) {
        case .silent: Console.silence()
        // The workers of a run are quiet: one warning is enough.
        case .quiet: break
        case .normal, .verbose:
            for line in EnvironmentNames.warnings(ProcessInfo.processInfo.environment) {
                Console.note("warning: \(line)")
            }
        }
        // The command itself, not its root, of which the parser would first build the arguments of every command on the way, twice.
        let path = words.contains(where: isForRoot) ? CommandPath([], of: root) : CommandPath(words, of: root)
        return await code(of: path.command, words, root) {
            var command = try SettingWords.parse(path.command, Array(words.dropFirst(path.words.count - 1)))
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        }
    }

    /// Runs `body`, and the exit code of its end.
    private static func code(
        of command: any ParsableCommand.Type, _ words: [String], _ root: any ParsableCommand.Type,
        _ body: () async throws -> Void
    ) async -> Int32 {
        do {
            try await body()
            return codeWhereOutputFailed ?? 0
        } catch let error as PrefetchError {
            Console.error(error.message, hint: error.hint)
            return code(of: error.kind)
        } catch let error as RedisError {
            let error = PrefetchError(error)
            Console.error(error.message, hint: error.hint)
            return code(of: error.kind)
        } catch let error as WebImageError {
            Console.error(error.message, hint: "")
            return 74
        } catch let code as ExitCode {
            // Of a command that has printed its own error.
            return codeWhereOutputFailed ?? code.rawValue
        } catch {
            // The version, a script for completions.
            if command.exitCode(for: error) == .success { command.exit(withError: error) }
            let usage = UsageError(SettingWords.message(for: error, of: command), words, of: root, others: others)
            Console.error(usage.message, hint: usage.hint)
            return 64
        }
    }

    /// `--version`, and what the parser makes scripts for completions and manuals of.
    private static func isForRoot(_ word: String) -> Bool {
        word == "--version" || word.hasPrefix("--generate-") || word.hasPrefix("--experimental-")
    }

    /// The commands with most options.
    static var others: [CommandPath] {
        ([RunCommand.self, SubmitCommand.self] as [any ParsableCommand.Type]).map {
            CommandPath($0, named: "prefetch-coord \($0._commandName)")
        }
            + [CommandPath([], of: WorkerCommand.self)]
    }

    /// The page that `-h`, `--help` or `help COMMAND` asks for; nil if none does.
    private static func helpPage(_ words: [String], of root: any AsyncParsableCommand.Type) -> HelpPage? {
        // A command that needs a subcommand, and has none, prints its help.
        let path = CommandPath(words, of: root)
        let isIncomplete =
            !path.command.configuration.subcommands.isEmpty && path.command.configuration.defaultSubcommand == nil
            && words.count == path.words.count - 1 && path.words.last != "prefetch-worker"
        let options = words.prefix { $0 != "--" }
        if options.first == "help" { return HelpPage(CommandPath(Array(options.dropFirst()), of: root), .full) }
        if options.contains("--help") { return HelpPage(path, .full) }
        return options.contains("-h") || isIncomplete ? HelpPage(path, .short) : nil
    }

    /// The exit code where standard output could not be written: the result is incomplete.
    private static var codeWhereOutputFailed: Int32? {
        guard let code = Console.outputError else { return nil }
        Console.error(
            "cannot write the result: \(String(cString: strerror(code)))", hint: "make room, and run it again")
        return 74
    }

    /// The exit code of an error.
    static func code(of kind: PrefetchError.Kind) -> Int32 {
        switch kind {
        case .unreadableList: 65
        case .notFound: 66
        case .redisUnavailable: 69
        case .software: 70
        case .cacheUnavailable: 73
        case .inputOutput: 74
        case .stopped: 75
        case .refused: 77
        case .configuration: 78
        }
    }
}

extension StopRequest {
    /// Signals that ask this process to end ask the command. Inside another program they are that program's.
    func listen() {
        guard Console.printed == nil else { return }
        TerminationSignals.install { signal, count in self.request(signal: signal, count: count) }
    }
}
