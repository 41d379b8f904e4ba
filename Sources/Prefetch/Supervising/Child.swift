internal import CLinux
internal import Glibc
internal import Threading

/// One child process, waited for by its own thread: it never stays a zombie, and its pid is never signalled once it may be reused.
final class Child: Sendable {
    private struct State {
        var end: ChildEnd?
        var waiters: [UnsafeContinuation<ChildEnd, Never>] = []
    }

    let pid: Int32
    private let state = Locked(State())
    /// Its thread must live as long as the child.
    private let parent: ChildProcesses

    init(pid: Int32, parent: ChildProcesses) {
        self.pid = pid
        self.parent = parent
        let waiter = ThreadPool(threads: 1, name: "wait")
        Task { await waiter.run { self.reap() } }
    }

    var isRunning: Bool { state.withLock { $0.end == nil } }

    /// Waits for the end, also if cancelled. Any number of callers get the same result.
    @discardableResult func wait() async -> ChildEnd {
        await withUnsafeContinuation { continuation in
            let end = state.withLock { state in
                if state.end == nil { state.waiters.append(continuation) }
                return state.end
            }
            if let end { continuation.resume(returning: end) }
        }
    }

    /// Signals it, or its process group; does nothing once it has ended.
    func signal(_ number: Int32, group: Bool = false) {
        state.withLock { if $0.end == nil { _ = kill(group ? -pid : pid, number) } }
    }

    /// SIGTERM, then SIGKILL after `waitLimit`.
    func stop(waitLimit: Duration) async {
        signal(SIGTERM)
        let timer = Task {
            try await Task.sleep(for: waitLimit)
            signal(SIGKILL, group: true)
        }
        await wait()
        timer.cancel()
    }

    private func reap() {
        var info = siginfo_t()
        // Leaves a zombie, so that the pid stays valid under the lock.
        while waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
        let (end, waiters) = state.withLock { state in
            var status: Int32 = 0
            waitpid(pid, &status, 0)
            let end: ChildEnd =
                clinux_wexited(status) != 0
                ? .exited(clinux_wexitstatus(status)) : .signalled(clinux_wtermsig(status))
            state.end = end
            defer { state.waiters = [] }
            return (end, state.waiters)
        }
        for waiter in waiters { waiter.resume(returning: end) }
    }
}
