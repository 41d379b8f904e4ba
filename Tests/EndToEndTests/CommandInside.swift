import Glibc
import TestSupport

@testable import PrefetchCommands
@testable import prefetch_coord

/// Commands of `prefetch-coord` that run in the test's process: a program takes a tenth of a second of the processor to start, and most tests
/// are about what it answers. The start itself, signals, terminals and what lasts are tested with programs.
enum CommandInside {
    /// Those that answer and end.
    private static let names: Set = [
        "status", "failures", "why", "export", "workers", "fsck", "metrics", "blacklist", "cache", "submit", "pause",
        "resume", "set", "cancel", "rm", "retry", "run",
    ]
    /// What is the process' own: its input, its output, how it prints from then on, and whoever waits.
    private static let ofProcess: Set = [
        "-", "-qq", "--show-secrets", "--wait", "--listen", "--progress", "-h", "--help",
    ]

    /// As for programs that a test starts.
    private static let hasState: Bool = {
        setenv("XDG_STATE_HOME", TemporaryDirectory.stateHome.path, 1)
        signal(SIGPIPE, SIG_IGN)
        return true
    }()

    /// What a command line answers; nil if only a program can run it.
    static func run(_ words: [String]) async -> ChildProcess? {
        guard let name = words.first, names.contains(name), ofProcess.isDisjoint(with: words), hasState,
            !words.contains(where: { $0.hasPrefix("/dev/") || $0.hasPrefix("/proc/") })
        else { return nil }
        let printed = Console.Printed(program: builtProduct("prefetch-coord"))
        let code = await Console.$printed.withValue(printed) { await CommandRunner.run(words, of: CoordCommand.self) }
        return ChildProcess(exited: code, stdout: printed.output, stderr: printed.errors)
    }
}
