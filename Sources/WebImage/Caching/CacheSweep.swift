internal import CLinux
internal import Glibc

/// Removes old images from a cache: one process at a time, and never images fetched by a running batch.
package final class CacheSweep: Sendable {
    private let directory: CacheDirectory
    private let leaves: LeafDirectories
    private let account: CacheAccount
    private let quarantine: Quarantine
    private let temporaryFiles: TemporaryFiles
    private let expireType: DiskCache.ExpireType

    init(
        _ directory: CacheDirectory, _ leaves: LeafDirectories, _ account: CacheAccount, _ quarantine: Quarantine,
        _ temporaryFiles: TemporaryFiles, _ expireType: DiskCache.ExpireType
    ) {
        (self.directory, self.leaves, self.account, self.quarantine) = (directory, leaves, account, quarantine)
        (self.temporaryFiles, self.expireType) = (temporaryFiles, expireType)
    }

    /// Removes images by the rules and counts the rest. Blocks. Spares images that are open, in transfer, replaced meanwhile, or covered by
    /// a ``CacheProtection``. May be killed at any instruction.
    /// * `visit`: called before each removal, even if the image then proves to be in use.
    /// * `isOver`: polled; true ends the sweep.
    /// - Returns: nil if another process is sweeping this cache; nothing was done then. Does not apply to dry runs.
    /// - Throws: `localFault`; `cancelled` if `isOver`.
    package func run(
        _ rules: SweepRules, visit: (SweptImage) -> Void = { _ in }, isOver: () -> Bool = { Task.isCancelled }
    ) throws(WebImageError) -> SweepReport? {
        if rules.isDryRun { return try runLocked(rules, visit, isOver) }
        guard !directory.isReadOnly else { throw directory.fault("remove an image", code: EROFS) }
        guard let lock = try SweepLock(directory) else { return nil }
        // Before the first removal. Where it cannot be made, batches go on to protect everything.
        _ = [UInt8]().withUnsafeBytes { directory.makeOnce(Self.trace, $0, mode: 0o444, isSynced: false) }
        let report = try runLocked(rules, visit, isOver)
        _ = consume lock
        return report
    }

    private func runLocked(
        _ rules: SweepRules, _ visit: (SweptImage) -> Void, _ isOver: () -> Bool
    ) throws(WebImageError) -> SweepReport {
        if !rules.isDryRun { account.refresh() }
        // The closures do not outlive this call.
        let result = withoutActuallyEscaping(visit) { visit in
            withoutActuallyEscaping(isOver) { isOver in
                Result { () throws(WebImageError) in
                    var run = try SweepRun(
                        directory, leaves, account, expireType, rules,
                        protectedSince: try protectedSince(cleans: !rules.isDryRun), visit: visit, isOver: isOver)
                    try run.expire()
                    try run.evict()
                    return run.report
                }
            }
        }
        var report = try result.get()
        if rules.removesLeftovers {
            report.temporaryFiles = try temporaryFiles.removeStale(isDryRun: rules.isDryRun)
            if let age = rules.maxAge {
                report.movedAside = try quarantine.removeOld(olderThan: age, isDryRun: rules.isDryRun)
            }
        }
        return report
    }

    // MARK: Protection

    /// Exists once the cache was swept.
    private static let trace = ".prefetch/swept"

    /// Whether the cache was ever swept: only then the images that a batch finds have to be marked.
    package var hasSwept: Bool {
        var status = stat()
        return fstatat(directory.descriptor, Self.trace, &status, AT_SYMLINK_NOFOLLOW) == 0
    }

    /// Whether images of a running batch are protected.
    package func hasProtectedImages() throws(WebImageError) -> Bool { try protectedSince(cleans: false) != nil }

    /// Start of the protected period in nanoseconds since 1970; nil if there is none. Removes files of dead processes.
    /// * `cleans`: false keeps those files.
    private func protectedSince(cleans: Bool) throws(WebImageError) -> Int64? {
        var oldest: Int64?
        for name in try directory.names(in: CacheProtection.folder, length: nil) where !name.hasPrefix(".") {
            let path = "\(CacheProtection.folder)/\(name)"
            guard let file = directory.open(path) else { continue }
            if flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 {
                // Under the lock, so that a process that has just created it notices.
                if cleans { directory.removeName(path) }
                continue
            }
            guard let bytes = OpenFile.read(file.descriptor, at: 0, limit: 8), bytes.count == 8 else { continue }
            let moment = bytes.withUnsafeBytes { $0.loadUnaligned(as: Int64.self) }
            if moment > 0 { oldest = min(oldest ?? moment, moment) }
        }
        return oldest
    }
}
