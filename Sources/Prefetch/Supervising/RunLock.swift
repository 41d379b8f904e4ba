internal import Threading

/// Determines whether a `run` is alone on its cache, so that it may reap an earlier run's workers without waiting for their lease.
///
/// The only `run` holds the gate until ``share()``: until then no other `run` can start workers that would look like old ones.
package final class RunLock: Sendable {
    /// Whether no other `run` uses the cache. Then reap, and call ``share()`` before starting workers.
    package let isAlone: Bool
    private let users: LockFile
    private let gate: Locked<LockFile?>

    private init(isAlone: Bool, users: LockFile, gate: LockFile?) {
        self.isAlone = isAlone
        self.users = users
        self.gate = Locked(gate)
    }

    deinit {
        users.release()
        gate.withLock { $0?.release() }
    }

    /// Registers a run, until the last reference goes or the process ends. Waits while another `run` still reaps, 30 s at most.
    package static func acquire(_ state: RunState) async throws(PrefetchError) -> RunLock {
        let folder = state.folder
        let gate = try await take("run.gate", in: folder, shared: false)
        if let users = try LockFile.take("run.lock", in: folder) {
            return RunLock(isAlone: true, users: users, gate: gate)
        }
        defer { gate.release() }
        // Exclusive only behind the gate, which this process has: the current holder shares it.
        let users = try await take("run.lock", in: folder, shared: true)
        return RunLock(isAlone: false, users: users, gate: nil)
    }

    package func share() {
        let gate = gate.withLock { gate in
            defer { gate = nil }
            return gate
        }
        guard let gate else { return }
        users.share()
        gate.release()
    }

    private static func take(
        _ name: String, in folder: PinnedFolder, shared: Bool
    ) async throws(PrefetchError) -> LockFile {
        let path = "\(folder.path)/\(name)"
        let deadline = ContinuousClock.now + .seconds(30)
        while true {
            if let lock = try LockFile.take(name, in: folder, shared: shared) { return lock }
            guard ContinuousClock.now < deadline else {
                throw PrefetchError(
                    .stopped, "another run has been starting on this cache for 30 s: it holds \(path)",
                    hint: "find it with `fuser \(path)`")
            }
            do {
                try await Task.sleep(for: .milliseconds(20))
            } catch {
                throw PrefetchError(.stopped, "stopped while another run was starting on this cache")
            }
        }
    }
}
