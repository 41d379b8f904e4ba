internal import CLinux
internal import Glibc
internal import Threading

/// Checks and repairs a whole cache: damaged images, and files that do not belong to it.
public final class CacheAudit: Sendable {
    private let directory: CacheDirectory
    private let leaves: LeafDirectories
    private let account: CacheAccount
    private let quarantine: Quarantine
    private let images: ImageFiles

    init(
        _ directory: CacheDirectory, _ leaves: LeafDirectories, _ account: CacheAccount, _ quarantine: Quarantine,
        _ images: ImageFiles
    ) {
        (self.directory, self.leaves, self.account, self.quarantine) = (directory, leaves, account, quarantine)
        self.images = images
    }

    // MARK: Verify

    /// Reads every image of the cache and reports problems. Changes nothing.
    /// - Parameters:
    ///   - level: the level that each image should have passed.
    ///   - jobs: number of threads, each working on one leaf directory at a time; nil: one per processor.
    ///   - check: checks the image bytes, on one of the threads, and returns the problem; by default no check.
    ///   - report: called for each finding, at most one per file, in key order regardless of the number of threads, when its directory and
    ///     the previous ones are done.
    /// - Returns: the number of files checked.
    /// - Throws: `localFault` if the cache cannot be read; `cancelled` if the task is cancelled.
    public nonisolated(nonsending) func verify(
        atLeast level: ValidationLevel = .none, jobs: Int? = nil,
        check: @escaping @Sendable (CacheEntry) throws(WebImageError) -> String? = { _ throws(WebImageError) in nil },
        report: (CacheFinding) -> Void
    ) async throws(WebImageError) -> Int {
        var checked = 0
        try await forEachLeaf(jobs: jobs) { [self] leaf throws(WebImageError) in
            var findings: [CacheFinding] = []
            let count = try verify(leaf: leaf, atLeast: level, check: check) { finding, _ in findings.append(finding) }
            return (count, findings)
        } take: { (count: Int, findings: [CacheFinding]) in
            checked += count
            findings.forEach(report)
        }
        return checked
    }

    /// Checks one leaf directory.
    /// * `found`: also receives the open file, nil if it could not be opened. While it is open, its inode is not reused.
    private func verify(
        leaf: String, atLeast level: ValidationLevel, check: (CacheEntry) throws(WebImageError) -> String?,
        found: (_ finding: CacheFinding, _ entry: CacheEntry?) throws(WebImageError) -> Void
    ) throws(WebImageError) -> Int {
        var checked = 0
        try leaves.walk(leaf) { key, _, _ throws(WebImageError) in
            guard !Task.isCancelled else { throw WebImageError(.cancelled, "the check of the cache was cancelled") }
            var entry: CacheEntry?
            guard let problem = try examine(key, level: level, check: check, entry: &entry) else { return }
            checked += 1
            if case .some(let problem) = problem {
                try found(CacheFinding(key: key, path: images.path(of: key), problem: problem), entry)
            }
        }
        return checked
    }

    /// Nil if the file is gone, `.some(nil)` if it is intact.
    private func examine(
        _ key: CacheKey, level: ValidationLevel, check: (CacheEntry) throws(WebImageError) -> String?,
        entry looked: inout CacheEntry?
    ) throws(WebImageError) -> CacheFinding.Problem?? {
        let entry: CacheEntry
        do throws(WebImageError) {
            guard let found = try images.open(key, level: level) else { return .none }
            entry = found
        } catch {
            return .some(.unreadable(error.message))
        }
        looked = entry
        if entry.isForeign { return .some(.key) }
        guard entry.isFile else { return .some(.notAFile) }
        if let record = entry.claim {
            guard record.length == entry.size else { return .some(.size(expected: record.length, found: entry.size)) }
            if let digest = record.digest {
                let found: Digest
                do throws(WebImageError) {
                    found = try entry.digest()
                } catch {
                    return .some(.unreadable(error.message))
                }
                guard found == digest else { return .some(.digest) }
            }
        } else if entry.size == 0 {
            return .some(.size(expected: 1, found: 0))
        }
        guard entry.isWhole else {
            return .some(.image("\(entry.size) bytes without a record of it, more than an image may have"))
        }
        if let text = try check(entry) { return .some(.image(text)) }
        switch entry.standing {
        case .verified: return .some(nil)
        case .lower(let passed): return .some(.level(passed))
        case .unverified: return .some(.noRecord)
        }
    }

    // MARK: Repair

    /// What was done about a file with a problem.
    public enum Repair: Sendable, Equatable {
        /// Moved into `bad/`; from now on a miss.
        case movedAside
        /// A valid image; its record was updated.
        case recorded
        /// Left unchanged: it has changed meanwhile, or permission is missing.
        case left
    }

    /// Reads every image like ``verify(atLeast:jobs:check:report:)`` and repairs problems: damaged files are moved into `bad/`, so that
    /// they are fetched again; files without a record or below the level are verified now. Nothing outside the cache changes, nothing is
    /// deleted.
    ///
    /// The thread that finds a problem repairs it immediately, so that little can change in between; a file that did change is left.
    /// - Parameters:
    ///   - level: the level that each image should have passed.
    ///   - jobs: number of threads; nil: one per processor.
    ///   - coder: verifies images without a record.
    ///   - check: checks the bytes of every image, on one of the threads, and returns the problem.
    ///   - report: called for each finding and repair, in key order.
    /// - Returns: the number of files checked.
    /// - Throws: `localFault` if the cache cannot be read or written; `cancelled` if the task is cancelled.
    public nonisolated(nonsending) func repair(
        atLeast level: ValidationLevel = .none, jobs: Int? = nil, coder: ImageCoder = ImageCoder(),
        check: @escaping @Sendable (CacheEntry) throws(WebImageError) -> String? = { _ throws(WebImageError) in nil },
        report: (CacheFinding, Repair) -> Void
    ) async throws(WebImageError) -> Int {
        guard !directory.isReadOnly else { throw directory.fault("repair", code: EROFS) }
        var checked = 0
        try await forEachLeaf(jobs: jobs) { [self] leaf throws(WebImageError) in
            var repairs: [(CacheFinding, Repair)] = []
            let count = try verify(leaf: leaf, atLeast: level, check: check) { finding, entry throws(WebImageError) in
                repairs.append(try mended(finding, entry, level: level, coder))
            }
            return (count, repairs)
        } take: { (count: Int, repairs: [(CacheFinding, Repair)]) in
            checked += count
            for (finding, repair) in repairs { report(finding, repair) }
        }
        // The account does not include manual changes to the files.
        try account.recount()
        return checked
    }

    private func mended(
        _ finding: CacheFinding, _ entry: CacheEntry?, level: ValidationLevel, _ coder: ImageCoder
    ) throws(WebImageError) -> (CacheFinding, Repair) {
        guard finding.isDamaged else {
            // A copy gets back the level that the record of its original has.
            let claimed = entry?.claim?.level ?? .none
            return try proved(finding, entry, level: max(level, claimed, .structure), coder)
        }
        let inode = entry?.inode ?? leaves.inode(of: finding.key)
        return (finding, quarantine.moveImage(finding.key, inode: inode) ? .movedAside : .left)
    }

    private func proved(
        _ finding: CacheFinding, _ looked: CacheEntry?, level: ValidationLevel, _ coder: ImageCoder
    ) throws(WebImageError) -> (CacheFinding, Repair) {
        guard let entry = try images.open(finding.key, level: level), entry.inode == looked?.inode else {
            return (finding, .left)
        }
        let bytes = try entry.bytes()
        let info: ImageInfo
        do throws(WebImageError) {
            info = try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
                try coder.verify(bytes, level: level)
            }
        } catch {
            guard error.code != .localFault else { throw error }
            // It is not proven to be damaged.
            guard error.code == .badImageData else { return (finding, .left) }
            var finding = finding
            finding.problem = .image(error.message)
            return (finding, quarantine.moveImage(entry.key, inode: entry.inode) ? .movedAside : .left)
        }
        return (finding, try images.raise(entry, to: info) ? .recorded : .left)
    }

    /// Processes leaf directories concurrently and delivers the results in order. At most four results per thread wait, to bound memory.
    private nonisolated(nonsending) func forEachLeaf<Product: Sendable>(
        jobs: Int?, work: @escaping @Sendable (_ leaf: String) throws(WebImageError) -> Product,
        take: (Product) -> Void
    ) async throws(WebImageError) {
        let leaves = try leaves.paths()
        let jobs = max(1, min(jobs ?? Processors.count, CacheKey.leafCount))
        let pool = ThreadPool(threads: jobs, name: "check")
        let result = await withTaskGroup(
            of: (index: Int, product: Result<Product, WebImageError>).self, returning: Result<Void, WebImageError>.self
        ) { group in
            var (started, running, taken) = (0, 0, 0)
            var waiting: [Int: Result<Product, WebImageError>] = [:]
            while taken < leaves.count {
                while running < jobs, started < min(leaves.count, taken + 4 * jobs) {
                    let (index, leaf) = (started, leaves[started])
                    group.addTask(executorPreference: pool) {
                        do throws(WebImageError) { return (index, .success(try work(leaf))) } catch {
                            return (index, .failure(error))
                        }
                    }
                    started += 1
                    running += 1
                }
                guard let done = await group.next() else { break }
                running -= 1
                waiting[done.index] = done.product
                while let product = waiting.removeValue(forKey: taken) {
                    switch product {
                    case .success(let product): take(product)
                    case .failure(let error):
                        group.cancelAll()
                        return .failure(error)
                    }
                    taken += 1
                }
            }
            return .success(())
        }
        try result.get()
    }

    // MARK: Strays

    /// Finds foreign entries below `v1`: other names, and symbolic links in place of directories, which are not followed. They are
    /// harmless.
    /// * `movesAside`: whether they are also moved into `bad/`.
    /// * `visit`: receives each path below the cache directory, and whether it was moved.
    /// - Throws: `localFault`; `cancelled` if the task is cancelled.
    package func strays(
        movesAside: Bool = false, _ visit: (_ path: String, _ isMoved: Bool) -> Void
    ) throws(WebImageError) {
        try strays(in: "v1", depth: 0, movesAside, visit)
    }

    private func strays(
        in path: String, depth: Int, _ movesAside: Bool, _ visit: (String, Bool) -> Void
    ) throws(WebImageError) {
        guard !Task.isCancelled else { throw WebImageError(.cancelled, "the check of the cache was cancelled") }
        guard let parent = directory.folder(path) else { return }
        for name in try directory.names(in: path, length: nil) where name != "." && name != ".." {
            var status = stat()
            guard fstatat(parent.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
            if depth < 2 {
                if name.utf8.count == 1, Digest.isDigit(name.utf8.first ?? 0), status.st_mode & S_IFMT == S_IFDIR {
                    try strays(in: "\(path)/\(name)", depth: depth + 1, movesAside, visit)
                    continue
                }
            } else if Self.isOurs(name) {
                continue
            }
            visit("\(path)/\(name)", movesAside && quarantine.moveStray(name, of: parent.descriptor))
        }
    }

    private static func isOurs(_ name: String) -> Bool {
        if name.hasPrefix(".t-") { return true }
        let stem =
            name.hasSuffix(CacheRecord.fileSuffix)
            ? name.utf8.dropLast(CacheRecord.fileSuffix.utf8.count) : name.utf8[...]
        return stem.count == CacheKey.nameLength && stem.allSatisfy(Digest.isDigit)
    }

    // MARK: Count

    /// Number of images and sum of their lengths in bytes (SDDiskCache's `totalCount`, `totalSize`). Reads every inode, not the account.
    /// - Throws: `localFault`.
    public func count() throws(WebImageError) -> (images: Int, bytes: Int) {
        var sum = (images: 0, bytes: 0)
        for leaf in try leaves.paths() {
            try leaves.walk(leaf) { _, leaf, name throws(WebImageError) in
                var status = stat()
                guard fstatat(leaf, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return }
                sum.images += 1
                sum.bytes = Plausible.sum(sum.bytes, Int(status.st_size))
            }
        }
        return sum
    }
}
