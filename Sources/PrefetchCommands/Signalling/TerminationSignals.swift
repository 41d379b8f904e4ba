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
                    guard count == 1, let number = counter.count(Int32(byte)) else { continue }
                    handler(Int32(byte), number)
                }
            }
        }
        return true
    }

    /// The exit code of a command that such a signal has ended: 130 for SIGINT, 143 for SIGTERM.
    package static func exitCode(_ signal: Int32) -> Int32 { 128 + signal }
}
