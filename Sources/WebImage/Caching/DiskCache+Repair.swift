internal import CLinux
internal import Glibc

extension DiskCache {
    /// What became of a file that a check found fault with.
    public enum Repair: Sendable, Equatable {
        /// It is in `bad/`, and a miss from now on.
        case movedAside
        /// It is a whole image, and its record says so from now on.
        case recorded
        /// It stays as it is: it changed meanwhile, or this user may not.
        case left
    }

    /// Reads every image of the cache as ``verify(atLeast:check:report:)`` does, and mends what it finds: what is damaged is moved into
    /// `bad/`, so that it is fetched again; what has no record, or passed a lower level, is verified now. Nothing outside of the cache is
    /// touched, and nothing is deleted.
    /// - Parameters:
    ///   - level: what each image should have passed.
    ///   - coder: looks at images without a record.
    ///   - check: looks at the bytes of every image, and says what is wrong with them.
    ///   - report: hears of each finding and of what became of the file.
    /// - Returns: how many files were looked at.
    /// - Throws: `localFault` where the cache itself cannot be read or written; `cancelled` where the task is.
    public func repair(
        atLeast level: ValidationLevel = .none, coder: ImageCoder = ImageCoder(),
        check: (CacheEntry) throws(WebImageError) -> String? = { _ throws(WebImageError) in nil },
        report: (CacheFinding, Repair) -> Void
    ) throws(WebImageError) -> Int {
        guard !configuration.isReadOnly else { throw fault("repair", code: EROFS) }
        let checked = try verify(atLeast: level, check: check) { finding, entry throws(WebImageError) in
            let (finding, repair) = try mended(finding, entry, level: level, coder)
            report(finding, repair)
        }
        // What others did to its files by hand is in no account.
        try recount()
        return checked
    }

    /// Does what is to be done about a finding.
    func mended(
        _ finding: CacheFinding, _ entry: CacheEntry?, level: ValidationLevel, _ coder: ImageCoder
    ) throws(WebImageError) -> (CacheFinding, Repair) {
        guard finding.isDamaged else { return try proved(finding, entry, level: max(level, .structure), coder) }
        let inode = entry?.inode ?? inode(of: finding.key)
        return (finding, moveAside(finding.key, inode: inode) ? .movedAside : .left)
    }

    /// Verifies what no record vouches for.
    private func proved(
        _ finding: CacheFinding, _ looked: CacheEntry?, level: ValidationLevel, _ coder: ImageCoder
    ) throws(WebImageError) -> (CacheFinding, Repair) {
        guard let entry = try examined(finding.key, level: level), entry.inode == looked?.inode else {
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
            // Nothing says that it is damaged.
            guard error.code == .badImageData else { return (finding, .left) }
            var finding = finding
            finding.problem = .image(error.message)
            return (finding, moveAside(entry, isLocked: false) ? .movedAside : .left)
        }
        return (finding, try raise(entry, to: info) ? .recorded : .left)
    }
}
