internal import CLinux
internal import Glibc
internal import Synchronization
internal import Threading

/// One transfer per image, over all processes that share a cache.
///
/// Among the tasks of this process a gate decides, in the order of arrival; between processes an open-file-description lock
/// (fcntl(2)) on one byte of one of 16 lock files. The kernel takes it away when a process dies, so there is no lock to expire or
/// to break. Use one `TransferLock` per process and cache.
///
/// Whoever waits for another process waits as long as that one gives signs of life: the holder of a transfer that lasts locks and unlocks a
/// second byte in turns, several times within the patience. It ends its transfer by its own limits of time, and a process that dies loses its
/// locks. One that hangs or was stopped keeps them and gives no signs; then there may be two transfers of the image, and whoever comes
/// second finds it stored, which costs a transfer and harms nothing.
package final class TransferLock: Sendable {
    private let gate = TransferGate<TransferLockFiles.Byte>()
    /// Since when a byte that another process has is asked for.
    private let contended = Locked<[TransferLockFiles.Byte: Double]>([:])
    private let files: TransferLockFiles
    private let directory: CacheDirectory
    private let patience: Duration
    /// The second bytes of the images that this process transfers, locked or not, of transfers that last.
    private let pulses = Locked<[TransferLockFiles.Byte: Bool]>([:])
    /// Images that this process transfers without having the lock.
    private let unlocked = Locked<Set<TransferLockFiles.Byte>>([])
    private let isTicking = Atomic(false)
    private let isSilent = Atomic(false)
    /// Made with the first transfer: on a network file system a lock is a request to its server.
    private let threads = Locked<ThreadPool?>(nil)

    /// Opens the lock files of a cache.
    /// * `patience`: the longest wait for another process without a sign of life.
    package init(_ cache: DiskCache, patience: Duration = .seconds(15)) throws(WebImageError) {
        self.patience = patience
        directory = cache.folder
        files = try TransferLockFiles(directory)
    }

    /// The right to transfer an image that nobody transfers now, which is the usual case; nil where somebody does.
    /// - Throws: `localFault` where the lock files do not work.
    package func tryAcquire(_ key: CacheKey) throws(WebImageError) -> Transfer? {
        let byte = TransferLockFiles.Byte(key)
        guard gate.tryEnter(byte) else { return nil }
        if files.tryLock(byte) {
            if !isTicking.load(ordering: .relaxed) { startTicking() }
            return Transfer(self, byte)
        }
        let code = errno
        gate.leave(byte)
        guard code == EAGAIN || code == EACCES else {
            throw directory.fault("lock a transfer", code: code)
        }
        return nil
    }

    /// Waits until nobody else transfers this image, or another process has given no sign of life for the patience. Holds no thread meanwhile.
    /// - Throws: `cancelled` where the task is cancelled while it waits, `localFault` where the lock files do not work.
    package func acquire(_ key: CacheKey) async throws(WebImageError) -> Transfer {
        let byte = TransferLockFiles.Byte(key)
        if !gate.tryEnter(byte) {
            guard await gate.enter(byte) else { throw Self.cancelled }
        }
        // Leaves the gate also where the lock below fails.
        let transfer = Transfer(self, byte)
        try await lock(byte)
        if !isTicking.load(ordering: .relaxed) { startTicking() }
        return transfer
    }

    /// Ends a transfer; by ``Transfer/release()`` alone.
    func giveBack(_ byte: TransferLockFiles.Byte) {
        files.unlock(byte)
        gate.leave(byte)
        // After that: a tick looks at the gate under this lock, so that it locks nothing of a transfer that is over.
        pulses.withLock { pulses in
            if pulses.isEmpty { return }
            if pulses.removeValue(forKey: byte) == true { files.setSecond(byte, isLocked: false) }
        }
        unlocked.withLock { if !$0.isEmpty { $0.remove(byte) } }
    }

    /// Gives no more signs of life, or gives them again: for a process that lives and whose transfers do not go on.
    package func setSilent(_ silent: Bool) { isSilent.store(silent, ordering: .relaxed) }

    /// How many images tasks of this process wait for another one to transfer.
    package var waitingForOthers: Int { contended.withLock { $0.count } }

    /// Three signs of life within the patience, of transfers that have lasted for one interval. Ends when there was none to transfer.
    private func startTicking() {
        guard !isTicking.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let pool = threads.withLock { threads in
            let pool = threads ?? ThreadPool(threads: 1, name: "transfers")
            threads = pool
            return pool
        }
        let interval = patience / 4
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
            isTicking.store(false, ordering: .releasing)
            // Whoever came in between has seen it ticking.
            if !gate.names.isEmpty { startTicking() }
        }
    }

    private func give(_ lasting: Set<TransferLockFiles.Byte>) {
        let waiting = contended.withLock { Set($0.keys) }.union(unlocked.withLock { $0 })
        for byte in lasting.subtracting(waiting) {
            pulses.withLock { pulses in
                guard gate.isTaken(byte) else { return }
                let isLocked = !(pulses[byte] ?? false)
                files.setSecond(byte, isLocked: isLocked)
                pulses[byte] = isLocked
            }
        }
    }

    /// How many tasks of this process wait for an image behind the one that transfers it.
    package func waiting(for key: CacheKey) -> Int {
        gate.waiting(TransferLockFiles.Byte(key)) ?? 0
    }

    /// For how many seconds a task of this process has waited for another one that transfers this image; nil where none does.
    package func secondsWaiting(for key: CacheKey) -> Double? {
        let since = contended.withLock { $0[TransferLockFiles.Byte(key)] }
        return since.map { max(0, MonotonicClock.now - $0) }
    }

    /// Asks again and again, ever less often: a call that waits in the kernel could not be cancelled.
    private func lock(_ byte: TransferLockFiles.Byte) async throws(WebImageError) {
        var end = ContinuousClock.now + patience
        var pulse = false
        var wait = Duration.milliseconds(2)
        var isWaiting = false
        defer { if isWaiting { contended.withLock { $0[byte] = nil } } }
        while !files.tryLock(byte) {
            guard errno == EAGAIN || errno == EACCES else {
                throw directory.fault("lock a transfer")
            }
            let isLocked = files.isSecondLocked(byte)
            if isLocked != pulse { (pulse, end) = (isLocked, .now + patience) }
            guard .now < end else {
                unlocked.withLock { _ = $0.insert(byte) }
                return
            }
            if !isWaiting { contended.withLock { $0[byte] = MonotonicClock.now } }
            isWaiting = true
            do {
                try await Task.sleep(for: wait)
            } catch {
                throw Self.cancelled
            }
            wait = min(wait * 1.5, .milliseconds(100))
        }
    }

    private static var cancelled: WebImageError {
        WebImageError(.cancelled, "cancelled while another transfer of the image was under way")
    }
}
