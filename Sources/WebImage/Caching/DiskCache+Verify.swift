internal import CLinux
internal import Glibc

extension DiskCache {
    /// Reads every image of the cache and tells what is wrong with it. Nothing is changed or moved.
    /// - Parameters:
    ///   - level: what each image should have passed.
    ///   - check: looks at the bytes as an image, and says what is wrong with them; by default nobody does.
    ///   - report: hears of each finding as it is made, a file has at most one.
    /// - Returns: how many files were looked at.
    /// - Throws: `localFault` where the cache itself cannot be read; `cancelled` where the task is.
    public func verify(
        atLeast level: ValidationLevel = .none,
        check: (CacheEntry) throws(WebImageError) -> String? = { _ throws(WebImageError) in nil },
        report: (CacheFinding) -> Void
    ) throws(WebImageError) -> Int {
        try verify(atLeast: level, check: check) { finding, _ throws(WebImageError) in report(finding) }
    }

    /// The same for whoever does something about it: hears of the open file too, nil where it could not be opened. Open, its inode
    /// is nobody else's.
    func verify(
        atLeast level: ValidationLevel, check: (CacheEntry) throws(WebImageError) -> String?,
        found: (_ finding: CacheFinding, _ entry: CacheEntry?) throws(WebImageError) -> Void
    ) throws(WebImageError) -> Int {
        var checked = 0
        for leaf in try leafPaths() { checked += try verify(leaf: leaf, atLeast: level, check: check, found: found) }
        return checked
    }

    /// The same for one leaf directory.
    func verify(
        leaf: String, atLeast level: ValidationLevel, check: (CacheEntry) throws(WebImageError) -> String?,
        found: (_ finding: CacheFinding, _ entry: CacheEntry?) throws(WebImageError) -> Void
    ) throws(WebImageError) -> Int {
        var checked = 0
        try walk(leaf: leaf) { key, _, _ throws(WebImageError) in
            guard !Task.isCancelled else { throw WebImageError(.cancelled, "the check of the cache was cancelled") }
            var entry: CacheEntry?
            guard let problem = try examine(key, level: level, check: check, entry: &entry) else { return }
            checked += 1
            if case .some(let problem) = problem {
                try found(CacheFinding(key: key, path: "\(directory)/\(key.path)", problem: problem), entry)
            }
        }
        return checked
    }

    /// Nil where the file is gone, `.some(nil)` where it is in order.
    private func examine(
        _ key: CacheKey, level: ValidationLevel, check: (CacheEntry) throws(WebImageError) -> String?,
        entry looked: inout CacheEntry?
    ) throws(WebImageError) -> CacheFinding.Problem?? {
        let entry: CacheEntry
        do throws(WebImageError) {
            guard let found = try examined(key, level: level) else { return .none }
            entry = found
        } catch {
            return .some(.unreadable(error.message))
        }
        looked = entry
        if entry.isForeign { return .some(.key) }
        guard entry.isFile else { return .some(.notAFile) }
        if let record = entry.record {
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
        } else if !entry.isWhole {
            return .some(.image("\(entry.size) bytes without a record, more than an image may have"))
        }
        if let text = try check(entry) { return .some(.image(text)) }
        switch entry.standing {
        case .verified: return .some(nil)
        case .lower(let passed): return .some(.level(passed))
        case .unverified: return .some(.noRecord)
        }
    }
}
