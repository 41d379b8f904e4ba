internal import CLinux
internal import Glibc
internal import Threading

/// A program run by a test, with stdout and stderr in files of a temporary directory. Killed and reaped when the last reference
/// goes.
package final class ChildProcess: Sendable, CustomStringConvertible {
    /// How a program ended.
    package enum Status: Sendable, Equatable {
        case exited(Int32)
        case signalled(Int32)
    }

    /// Why no program runs.
    package struct SpawnError: Error, CustomStringConvertible {
        package let description: String
    }

    /// The process id; its process group has the same number.
    package let pid: Int32
    private let files: TemporaryDirectory
    private let ended: Locked<Status?>
    private let waiter: ThreadPool

    /// What programs read of a user's environment, and a test does not mean.
    private static let wishes = ["REDIS_URL", "PREFETCH_REDIS_URL", "PREFETCH_CACHE", "http_proxy", "https_proxy"]

    /// Starts `path` in a process group of its own. `environment` is added to the test's own without ``wishes``, an empty value takes a
    /// variable away; XDG_STATE_HOME is a temporary folder of this test run unless it says otherwise; `input` is what it reads on stdin, nil
    /// is /dev/null.
    package init(
        _ path: String, _ arguments: [String] = [], environment: [String: String] = [:], input: [UInt8]? = nil
    ) async throws {
        files = TemporaryDirectory()
        waiter = ThreadPool(threads: 1, name: "wait")
        ended = Locked(nil)
        var stdin: Int32 = -1
        if let input {
            files.write(input, to: "stdin")
            stdin = clinux_open(files.path("stdin"), O_RDONLY | O_CLOEXEC, 0)
        }
        let stdout = clinux_open(files.path("stdout"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        let stderr = clinux_open(files.path("stderr"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { for file in [stdin, stdout, stderr] where file >= 0 { close(file) } }
        var variables = currentEnvironment()
        for name in Self.wishes { variables[name] = nil }
        variables["XDG_STATE_HOME"] = TemporaryDirectory.stateHome.path
        for (name, value) in environment { variables[name] = value.isEmpty ? nil : value }
        pid = await ProcessSpawner.shared.spawn(
            path, arguments: arguments, environment: variables, stdin: stdin, stdout: stdout, stderr: stderr)
        if pid < 0 { throw SpawnError(description: "cannot start \(path): \(String(cString: strerror(-pid)))") }
    }

    /// What a program would have left that was run in this process, and has ended.
    package init(exited code: Int32, stdout: [UInt8], stderr: [UInt8]) {
        files = TemporaryDirectory()
        waiter = ThreadPool(threads: 1, name: "wait")
        ended = Locked(.exited(code))
        pid = 0
        files.write(stdout, to: "stdout")
        files.write(stderr, to: "stderr")
    }

    deinit {
        guard pid > 0, ended.withLock({ $0 }) == nil else { return }
        kill(pid, SIGKILL)
        var status: Int32 = 0
        waitpid(pid, &status, 0)
    }

    /// Sends a signal; does nothing once the program has ended and its pid may be another's.
    package func signal(_ signal: Int32) {
        ended.withLock { if $0 == nil { kill(pid, signal) } }
    }

    /// Waits for the end. Any number of callers get the same answer.
    @discardableResult package func wait() async -> Status {
        let (pid, ended) = (pid, ended)
        return await waiter.run {
            if let status = ended.withLock({ $0 }) { return status }
            var info = siginfo_t()
            // Leaves it a zombie, so that under the lock the pid is still its own.
            while waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
            return ended.withLock { ended in
                var status: Int32 = 0
                waitpid(pid, &status, 0)
                let end: Status =
                    clinux_wexited(status) != 0
                    ? .exited(clinux_wexitstatus(status)) : .signalled(clinux_wtermsig(status))
                ended = end
                return end
            }
        }
    }

    /// Whether it has not been waited for and still runs.
    package var isRunning: Bool {
        ended.withLock {
            guard $0 == nil else { return false }
            var info = siginfo_t()
            return waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT | WNOHANG) == 0
                && info._sifields._sigchld.si_pid == 0
        }
    }

    /// What it has printed until now.
    package var stdout: String { String(decoding: files.read("stdout") ?? [], as: UTF8.self) }

    package var description: String { stdout + stderr }

    /// What it has printed to stderr until now.
    package var stderr: String { String(decoding: files.read("stderr") ?? [], as: UTF8.self) }
}

/// The environment the test was started with; `environ` itself is a global that Swift rightly distrusts.
private func currentEnvironment() -> [String: String] {
    var variables: [String: String] = [:]
    for entry in (readFile("/proc/self/environ") ?? []).split(separator: 0) {
        let text = String(decoding: entry, as: UTF8.self)
        guard let equals = text.firstIndex(of: "=") else { continue }
        variables[String(text[..<equals])] = String(text[text.index(after: equals)...])
    }
    return variables
}
