internal import CLinux
internal import Glibc
internal import Threading

/// Starts the children of the tests, from one thread that lives as long as the process: the kernel sends the death signal when
/// the thread that forked ends (prctl(2), PR_SET_PDEATHSIG), so no child outlives a test run, however that ends.
actor ProcessSpawner {
    static let shared = ProcessSpawner()

    private nonisolated let executor = ThreadExecutor(name: "spawner")

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// - Returns: the pid, or the negated errno.
    func spawn(
        _ path: String, arguments: [String], environment: [String: String], stdin: Int32, stdout: Int32, stderr: Int32
    ) -> Int32 {
        let argv = ([path] + arguments).map { strdup($0) } + [nil]
        let envp = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer {
            for pointer in argv { free(pointer) }
            for pointer in envp { free(pointer) }
        }
        let pid = clinux_spawn(path, argv, envp, [stdin, stdout, stderr], [-1, -1], -1, SIGKILL, 1)
        return pid < 0 ? -errno : pid
    }
}
