internal import CLinux
internal import Glibc
internal import Synchronization
internal import Threading

/// Ensures one transfer per image, over all processes that share a cache.
///
/// Among the tasks of this process a gate decides, first come first served; between processes an open-file-description lock (fcntl(2)) on a
/// byte of 16 lock files, which the kernel releases when a process dies, so nothing expires or has to be broken. Use one `TransferLock` per
/// process and cache.
///
/// A process waits for another one as long as that sends heartbeats: the holder of a long transfer alternately locks and unlocks a second
/// byte, several times per timeout. Its own time limits end the transfer, and a process that dies loses its locks. One that hangs or is
/// stopped keeps them without heartbeats; then there may be two transfers of the image, and the later one finds it stored, which costs a
/// transfer but is harmless.
package final class TransferLock: Sendable {
    private let gate = TransferGate<TransferLockFiles.Byte>()
    /// Start of the wait for each byte held by another process.
    private let contended = Locked<[TransferLockFiles.Byte: Double]>([:])
    private let files: TransferLockFiles
    private let directory: CacheDirectory
    private let waitLimit: Duration
    /// Second bytes of this process' long transfers, with their lock state.
    private let heartbeatBytes = Locked<[TransferLockFiles.Byte: Bool]>([:])
    private let unlocked = Locked<Set<TransferLockFiles.Byte>>([])
    private let isSendingHeartbeats = Atomic(false)
    private let isSilent = Atomic(false)
    /// Created with the first transfer: on a network file system a lock is a request to its server.
    private let threads = Locked<ThreadPool?>(nil)

    /// Opens the lock files of a cache.
    /// * `waitLimit`: the maximum wait for another process without a heartbeat.
    package init(_ cache: DiskCache, waitLimit: Duration = .seconds(15)) throws(WebImageError) {
        self.waitLimit = waitLimit
        directory = cache.folder
        files = try TransferLockFiles(directory)
    }

    /// Locks an image if it is free, the usual case; nil if it is being transferred.
    /// - Throws: `localFault` if the lock files do not work.
    package func tryAcquire(_ key: CacheKey) throws(WebImageError) -> Transfer? {
        let byte = TransferLockFiles.Byte(key)
        guard gate.tryEnter(byte) else { return nil }
        if files.tryLock(byte) {
            if !isSendingHeartbeats.load(ordering: .relaxed) { startHeartbeats() }
            return Transfer(self, byte)
        }
        let code = errno
        gate.leave(byte)
        guard code == EAGAIN || code == EACCES else {
            throw directory.fault("lock a transfer", code: code)
        }
        return nil
    }

    /// Waits until the image is not being transferred, or the other process has sent no heartbeat for the timeout. Blocks no thread.
    /// - Throws: `cancelled` if the task is cancelled during the wait, `localFault` if the lock files do not work.
    package func acquire(_ key: CacheKey) async throws(WebImageError) -> Transfer {
        let byte = TransferLockFiles.Byte(key)
        if !gate.tryEnter(byte) {
            guard await gate.enter(byte) else { throw Self.cancelled }
        }
        // Its release leaves the gate even if the lock below fails.
        let transfer = Transfer(self, byte)
        if try await lock(byte) { transfer.didWaitForOthers() }
        if !isSendingHeartbeats.load(ordering: .relaxed) { startHeartbeats() }
        return transfer
    }

    /// Ends a transfer; only called by ``Transfer/release()``.
    func giveBack(_ byte: TransferLockFiles.Byte) {
        files.unlock(byte)
        gate.leave(byte)
        // After leaving the gate: a tick checks the gate under this lock, so that it never locks the byte of a finished transfer.
        heartbeatBytes.withLock { heartbeatBytes in
            if heartbeatBytes.isEmpty { return }
            if heartbeatBytes.removeValue(forKey: byte) == true { files.setSecond(byte, isLocked: false) }
        }
        unlocked.withLock { if !$0.isEmpty { $0.remove(byte) } }
    }

    /// Stops or resumes heartbeats, for a live process whose transfers make no progress.
    package func setHeartbeatsPaused(_ silent: Bool) { isSilent.store(silent, ordering: .relaxed) }

    /// Number of images for which tasks of this process wait on another process.
    package var waitingOnOtherProcesses: Int { contended.withLock { $0.count } }

    /// Three heartbeats per timeout, for transfers that have lasted one interval. Ends when there are no transfers.
    private func startHeartbeats() {
        guard !isSendingHeartbeats.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let pool = threads.withLock { threads in
            let pool = threads ?? ThreadPool(threads: 1, name: "transfers")
            threads = pool
            return pool
        }
        let interval = waitLimit / 4
        Task(executorPreference: pool) { [weak self] in
            var before: Set<TransferLockFiles.Byte> = []
            var isIdle = false
            while !isIdle {
                try? await Task.sleep(for: interval)
                guard let self else { return }
                let now = gate.names
                if !isSilent.load(ordering: .relaxed) { give(now.intersection(before)) }
                isIdle = now.isEmpty && before.isEmpty
                before = now
            }
            guard let self else { return }
            isSendingHeartbeats.store(false, ordering: .releasing)
            // A transfer that began in between saw it ticking.
            if !gate.names.isEmpty { startHeartbeats() }
        }
    }

    private func give(_ lasting: Set<TransferLockFiles.Byte>) {
        let waiting = contended.withLock { Set($0.keys) }.union(unlocked.withLock { $0 })
        for byte in lasting.subtracting(waiting) {
            heartbeatBytes.withLock { heartbeatBytes in
                guard gate.isTaken(byte) else { return }
                let isLocked = !(heartbeatBytes[byte] ?? false)
                files.setSecond(byte, isLocked: isLocked)
                heartbeatBytes[byte] = isLocked
            }
        }
    }

    /// Whether another process waits for the one that this process transfers.
    package func isAwaited(_ key: CacheKey) -> Bool { files.isAwaited(TransferLockFiles.Byte(key)) }

    /// Number of tasks of this process that wait for the one transferring the image.
    package func waiting(for key: CacheKey) -> Int { waiting(for: TransferLockFiles.Byte(key)) }

    func waiting(for byte: TransferLockFiles.Byte) -> Int { gate.waiting(byte) ?? 0 }

    /// Seconds that a task of this process has waited for another process' transfer of the image; nil if none waits.
    package func secondsWaiting(for key: CacheKey) -> Double? {
        let since = contended.withLock { $0[TransferLockFiles.Byte(key)] }
        return since.map { max(0, MonotonicClock.now - $0) }
    }

    /// Polls at growing intervals: a blocking call could not be cancelled.
    /// - Returns: whether another process had it.
    private func lock(_ byte: TransferLockFiles.Byte) async throws(WebImageError) -> Bool {
        var end = ContinuousClock.now + waitLimit
        var pulse = false
        var wait = Duration.milliseconds(2)
        var isWaiting = false
        defer {
            if isWaiting {
                files.setWaiting(byte, false)
                contended.withLock { $0[byte] = nil }
            }
        }
        while !files.tryLock(byte) {
            guard errno == EAGAIN || errno == EACCES else {
                throw directory.fault("lock a transfer")
            }
            let isLocked = files.isSecondLocked(byte)
            if isLocked != pulse { (pulse, end) = (isLocked, .now + waitLimit) }
            guard .now < end else {
                unlocked.withLock { _ = $0.insert(byte) }
                return true
            }
            // Again each time: another process that waits may have had it until now.
            files.setWaiting(byte, true)
            if !isWaiting { contended.withLock { $0[byte] = MonotonicClock.now } }
            isWaiting = true
            do {
                try await Task.sleep(for: wait)
            } catch {
                throw Self.cancelled
            }
            wait = min(wait * 1.5, .milliseconds(100))
        }
        return isWaiting
    }

    private static var cancelled: WebImageError {
        WebImageError(.cancelled, "cancelled while another transfer of the image was in flight")
    }
}
