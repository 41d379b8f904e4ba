import Glibc
import Testing

@testable import PrefetchCommands

@Suite("Termination signals", .timeLimit(.minutes(5)))
struct TerminationSignalsTests {
    @Test("Signals arrive as calls, numbered in their row, once per process")
    func delivery() async {
        let (stream, continuation) = AsyncStream<[Int]>.makeStream()
        // Not the ones that end a test run. perf record and nohup leave some ignored, which would stay so.
        for number in [SIGUSR1, SIGUSR2] { signal(number, SIG_DFL) }
        #expect(TerminationSignals.install([SIGUSR1, SIGUSR2]) { continuation.yield([Int($0), $1]) })
        #expect(!TerminationSignals.install { _, _ in })
        var calls = stream.makeAsyncIterator()
        kill(getpid(), SIGUSR1)
        #expect(await calls.next() == [Int(SIGUSR1), 1])
        kill(getpid(), SIGUSR2)
        #expect(await calls.next() == [Int(SIGUSR2), 2])
    }

    @Test("A hang-up is never a second signal")
    func hangUp() {
        var counter = SignalCounter()
        #expect([SIGHUP, SIGHUP, SIGINT, SIGHUP, SIGTERM].map { counter.count($0) } == [1, nil, 2, nil, 3])
    }

    @Test("The exit codes are the shell's")
    func exitCodes() {
        #expect(TerminationSignals.exitCode(SIGINT) == 130)
        #expect(TerminationSignals.exitCode(SIGTERM) == 143)
    }
}
