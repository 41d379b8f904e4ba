internal import CLinux
internal import Glibc
internal import Threading

/// The signals of whoever has a whole terminal, as calls on a thread: those that end it, a new size, and being stopped and woken.
enum TerminalSignals {
    /// Calls `handler` with every signal. In place of ``TerminationSignals``, once per process.
    static func install(_ handler: @escaping @Sendable (Int32) -> Void) {
        signal(SIGPIPE, SIG_IGN)
        let all = [SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT]
        let pipe = clinux_signal_pipe(all, Int32(all.count))
        guard pipe >= 0 else { return }
        let thread = ThreadPool(threads: 1, name: "signals")
        Task {
            await thread.run {
                var byte: UInt8 = 0
                while true {
                    let count = read(pipe, &byte, 1)
                    guard count == 1 || (count < 0 && errno == EINTR) else { return }
                    if count == 1 { handler(Int32(byte)) }
                }
            }
        }
    }
}
