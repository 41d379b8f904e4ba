internal import CLinux
internal import Glibc
internal import Threading

/// Starts children that cannot outlive this process: the kernel signals them when the *thread* that forked them ends (prctl(2),
/// PR_SET_PDEATHSIG), so all are forked by this actor's one thread, which lives as long as any of them.
actor ChildProcesses {
    struct StartError: Error {
        /// errno(3).
        let code: Int32
        var reason: String { String(cString: strerror(code)) }
    }

    private nonisolated let executor = ThreadExecutor(name: "children")

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    deinit { executor.stop() }

    /// The child is waited for from then on.
    func start(_ program: ChildProgram) throws(StartError) -> Child {
        let words = [program.path] + program.arguments
        // execve(2) would truncate the word.
        guard !words.contains(where: { $0.utf8.contains(0) }) else { throw StartError(code: EINVAL) }
        let argv = words.map { strdup($0) } + [nil]
        defer { for word in argv { free(word) } }
        let pid = ChildEnvironment.withVariables { variables in
            clinux_spawn(
                program.path, argv, variables, [program.input, program.output, program.errors],
                [program.keeping, program.keepingToo], program.folder, program.deathSignal, 1)
        }
        guard pid > 0 else { throw StartError(code: errno) }
        return Child(pid: pid, parent: self)
    }
}
