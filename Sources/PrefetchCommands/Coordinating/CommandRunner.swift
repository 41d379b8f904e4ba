public import ArgumentParser
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
    }

    /// Runs a program; does not return.
    public static func main(_ root: any AsyncParsableCommand.Type) async -> Never {
        signal(SIGPIPE, SIG_IGN)
        let words = Array(CommandLine.arguments.dropFirst())
        if let unknown = Suggestion.forUnknown(words, of: root) {
            Console.error("there is no command '\(unknown.words)'", hint: unknown.hint)
            exit(64)
        }
        // Before anything is said.
        if words.contains("--show-secrets") { ShownURL.showSecrets() }
        // The workers of a run are quiet: one warning is enough.
        if !words.contains(where: { ["-q", "--quiet"].contains($0) }) {
            for line in EnvironmentNames.warnings(ProcessInfo.processInfo.environment) {
                Console.note("warning: \(line)")
            }
        }
        do {
            var command = try root.parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            exitWhereOutputFailed()
            exit(0)
        } catch let error as PrefetchError {
            Console.error(error.message, hint: error.hint)
            exit(code(of: error.kind))
        } catch let error as RedisError {
            let error = PrefetchError(error)
            Console.error(error.message, hint: error.hint)
            exit(code(of: error.kind))
        } catch let error as WebImageError {
            Console.error(error.message, hint: "")
            exit(74)
        } catch {
            if error is ExitCode { exitWhereOutputFailed() }
            root.exit(withError: error)
        }
    }

    /// A result that could not be written is none, whatever it says.
    private static func exitWhereOutputFailed() {
        guard let code = Console.outputError else { return }
        Console.error(
            "cannot write the result: \(String(cString: strerror(code)))", hint: "make room, and run it again")
        exit(74)
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
