internal import CLinux
internal import Glibc
internal import Threading

/// Delivers SIGINT, SIGTERM and SIGHUP on a thread, which may lock and allocate; turns SIGPIPE and SIGXFSZ into errors of the failed write.
package enum TerminationSignals {
    /// Signals that ask a command to end.
    package static let all = [SIGINT, SIGTERM, SIGHUP]

    /// Calls `handler` with every signal and its count: the first asks to finish, the second to stop now. Once per process, before anything
    /// is started that a signal should not end. An ignored signal (nohup) stays ignored.
    /// - Returns: false if it was installed before.
    @discardableResult package static func install(
        _ signals: [Int32] = all, handler: @escaping @Sendable (_ signal: Int32, _ count: Int) -> Void
    ) -> Bool {
        deliver(signals) { signal, number in
            if let number { handler(signal, number) }
        }
    }

    /// The exit code of a command that such a signal has ended: 130 for SIGINT, 143 for SIGTERM.
    package static func exitCode(_ signal: Int32) -> Int32 { 128 + signal }
}

/// Counts signals. A hang-up only counts as the first: a closing terminal sends it twice, itself and through its shell.
struct SignalCounter: Sendable {
    private var seen = 0

    /// - Returns: 1 for the first, 2 for the second…; nil if it is ignored.
    mutating func count(_ signal: Int32) -> Int? {
        if signal == SIGHUP && seen > 0 { return nil }
        seen += 1
        return seen
    }
}

/// Signals of a full-screen command, as calls on a thread: termination, resize, stop and continue.
enum TerminalSignals {
    /// Calls `handler` with every signal. Replaces ``TerminationSignals``, once per process.
    static func install(_ handler: @escaping @Sendable (Int32) -> Void) {
        _ = deliver([SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT]) { signal, _ in handler(signal) }
    }
}

/// Calls `handler` on a thread with each of these signals and its count, and turns SIGPIPE and SIGXFSZ into errors of the failed
/// write.
/// - Returns: false if signals are delivered already.
private func deliver(
    _ signals: [Int32], to handler: @escaping @Sendable (_ signal: Int32, _ number: Int?) -> Void
) -> Bool {
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    let pipe = clinux_signal_pipe(signals, Int32(signals.count))
    guard pipe >= 0 else { return false }
    let thread = ThreadPool(threads: 1, name: "signals")
    Task {
        await thread.run {
            var counter = SignalCounter()
            var byte: UInt8 = 0
            while true {
                let count = read(pipe, &byte, 1)
                guard count == 1 || (count < 0 && errno == EINTR) else { return }
                if count == 1 { handler(Int32(byte), counter.count(Int32(byte))) }
            }
        }
    }
    return true
}
