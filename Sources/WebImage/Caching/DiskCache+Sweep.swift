internal import CLinux
internal import Glibc

extension DiskCache {
    /// Removes what the rules say and counts what is left. Blocks.
    ///
    /// Never what a reader holds open, what is being transferred, what was replaced in between, or what anybody's ``CacheProtection``
    /// covers. May be killed at any instruction.
    ///
    /// * `visit`: hears of each image just before it goes; of one that turns out to be in use too.
    /// * `isOver`: asked again and again; true ends the sweep.
    /// - Returns: nil where another process sweeps this cache; nothing was done then. A dry run does not mind.
    /// - Throws: `localFault`; `cancelled` where `isOver`.
    package func sweep(
        _ rules: SweepRules, visit: (SweptImage) -> Void = { _ in }, isOver: () -> Bool = { Task.isCancelled }
    ) throws(WebImageError) -> SweepReport? {
        if rules.isDryRun { return try sweepAlone(rules, visit, isOver) }
        guard !configuration.isReadOnly else { throw fault("remove an image", code: EROFS) }
        guard let lock = try SweepLock(self) else { return nil }
        let report = try sweepAlone(rules, visit, isOver)
        _ = consume lock
        return report
    }

    private func sweepAlone(
        _ rules: SweepRules, _ visit: (SweptImage) -> Void, _ isOver: () -> Bool
    ) throws(WebImageError) -> SweepReport {
        if !rules.isDryRun { account?.refresh() }
        // The sweep keeps the closures no longer than this call.
        let result = withoutActuallyEscaping(visit) { visit in
            withoutActuallyEscaping(isOver) { isOver in
                Result { () throws(WebImageError) in
                    var sweep = try CacheSweep(self, rules, visit: visit, isOver: isOver)
                    try sweep.expire()
                    try sweep.evict()
                    return sweep.report
                }
            }
        }
        var report = try result.get()
        if rules.removesLitter {
            report.temporaryFiles = try removeStaleTemporaryFiles(isDryRun: rules.isDryRun)
            if let age = rules.maxAge {
                report.movedAside = try removeMovedAside(olderThan: age, isDryRun: rules.isDryRun)
            }
        }
        return report
    }

    /// Removes what was moved aside that long ago, its records with it.
    /// - Returns: how many files.
    private func removeMovedAside(olderThan seconds: Double, isDryRun: Bool) throws(WebImageError) -> Int {
        guard let bad = OpenFile(clinux_open_beneath(root, "bad", clinux_directory_flags(), 0)) else {
            guard errno == ENOENT else { throw fault("list bad") }
            return 0
        }
        let limit = Double(Self.now()) - seconds
        var removed = 0
        for name in try names(in: "bad", length: nil) where name != "." && name != ".." {
            var status = stat()
            // The change date: a rename sets it, and leaves the others as they were.
            guard fstatat(bad.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
                status.st_mode & S_IFMT != S_IFDIR, Double(status.st_ctim.tv_sec) <= limit,
                isDryRun || unlinkat(bad.descriptor, name, 0) == 0
            else { continue }
            removed += 1
        }
        return removed
    }
}
