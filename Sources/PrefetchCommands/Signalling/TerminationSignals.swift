internal import CLinux
internal import Glibc
internal import Threading

/// SIGINT, SIGTERM and SIGHUP as calls on a thread, which may take locks and allocate as no signal handler may; SIGPIPE becomes
/// an error of the write that met it.
package enum TerminationSignals {
    /// What asks a command to end.
    package static let all = [SIGINT, SIGTERM, SIGHUP]

    /// Calls `handler` with every signal and its number in the row: the first asks to finish, the second to stop now. Once per
    /// process, before anything is started that a signal should not end. A signal that was ignored (nohup) stays ignored.
    /// - Returns: false where it was installed before.
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

/// Which signal in the row it is. A hang-up is only ever a first one: a closing terminal sends it once itself and once through
/// its shell, and nobody meant "at once" by that.
struct SignalCounter: Sendable {
    private var seen = 0

    /// - Returns: 1 for the first, 2 for the second…; nil for one that says nothing new.
    mutating func count(_ signal: Int32) -> Int? {
        if signal == SIGHUP && seen > 0 { return nil }
        seen += 1
        return seen
    }
}

/// The signals of whoever has a whole terminal, as calls on a thread: those that end it, a new size, and being stopped and woken.
enum TerminalSignals {
    /// Calls `handler` with every signal. In place of ``TerminationSignals``, once per process.
    static func install(_ handler: @escaping @Sendable (Int32) -> Void) {
        _ = deliver([SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT]) { signal, _ in handler(signal) }
    }
}

/// Calls `handler` on a thread with each of these signals and its number in the row, and makes SIGPIPE an error of the write that met it.
/// - Returns: false where signals are delivered already.
private func deliver(
    _ signals: [Int32], to handler: @escaping @Sendable (_ signal: Int32, _ number: Int?) -> Void
) -> Bool {
    signal(SIGPIPE, SIG_IGN)
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
