internal import CLinux
internal import Glibc
internal import HeapModule

/// One sweep of a disk cache: removes expired images, then the oldest until the rest is small enough. Before a removal it locks the image's
/// transfer, so that no one is fetching it, and checks it again: a file with another inode or change date is kept. Open files stay
/// readable.
struct SweepRun {
    private(set) var report = SweepReport()

    private let directory: CacheDirectory
    private let leaves: LeafDirectories
    private let account: CacheAccount
    private let expireType: DiskCache.ExpireType
    private let rules: SweepRules
    /// Nanoseconds since 1970: images changed at or after this time are kept.
    private let protectedSince: Int64
    /// Nanoseconds since 1970: images of this date or older are expired; nil: none.
    private let expiry: Int64?
    private let locks: TransferLockFiles?
    private var pace: SweepRateLimit
    private let visit: (SweptImage) -> Void
    private let isOver: () -> Bool

    /// * `protectedSince`: nanoseconds since 1970, see ``CacheSweep/protectedSince(cleans:)``.
    /// * `visit`: called before each removal.
    init(
        _ directory: CacheDirectory, _ leaves: LeafDirectories, _ account: CacheAccount,
        _ expireType: DiskCache.ExpireType, _ rules: SweepRules, protectedSince marked: Int64?,
        visit: @escaping (SweptImage) -> Void, isOver: @escaping () -> Bool
    ) throws(WebImageError) {
        (self.directory, self.leaves, self.account) = (directory, leaves, account)
        (self.expireType, self.rules, self.visit, self.isOver) = (expireType, rules, visit, isOver)
        // Images added during the sweep are kept: they are about to be used.
        protectedSince = min(marked ?? .max, Self.now)
        expiry = rules.maxAge.map { Self.now - Int64(min(max($0, 0), 9e9) * 1e9) }
        locks = rules.isDryRun ? nil : try TransferLockFiles(directory)
        pace = SweepRateLimit(rate: marked == nil || rules.isDryRun ? 0 : rules.rate)
    }

    mutating func expire() throws(WebImageError) {
        for index in 0..<CacheKey.leafCount {
            try checkCancelled()
            let images = try rules.isDryRun ? account.images(leaf: index) : account.recount(leaf: index)
            guard !images.isEmpty else { continue }
            guard let leaf = directory.folder(CacheKey.leaf(index)) else { continue }
            for (name, status) in images {
                let image = Candidate(
                    name: name, leaf: index, status: status, date: date(name, status, leaf.descriptor))
                report.remaining.add(size: image.size)
                if let reason = reason(image) { try remove(image, from: leaf.descriptor, reason) }
            }
        }
        if !rules.isDryRun { account.finishCount() }
    }

    /// Why it goes, however much there is.
    private func reason(_ image: Candidate) -> SweepRules.Reason? {
        if let listed = rules.listed, let name = AgedImage.prefix(leaf: image.leaf, name: image.name),
            !listed.contains(name)
        {
            return .unlisted
        }
        return expiry.map { image.date <= $0 } == true ? .age : nil
    }

    mutating func evict() throws(WebImageError) {
        guard let maxSize = rules.maxSize, size > maxSize else { return }
        let target = rules.targetSize ?? maxSize
        var protected = SweepReport.Sum()
        let before = size
        let victims = try oldest(of: before - target, protected: &protected)
        // The size without them: reached earlier only if other processes remove images too.
        let end = before - victims.reduce(0) { $0 + $1.size }
        var rest = victims[...]
        while let first = rest.first, size > end {
            let next = rest.firstIndex { $0.leaf != first.leaf } ?? rest.endIndex
            try evict(rest[..<next], until: end)
            rest = rest[next...]
        }
        // Protected images prevent reaching the target.
        if size > target {
            report.spared.count += protected.count
            report.spared.size += protected.size
        }
    }

    /// The oldest images that together take `excess` bytes, and no more, in name order. Keeps 24 bytes per image: there may be tens of
    /// millions.
    private func oldest(
        of excess: Int, protected: inout SweepReport.Sum
    ) throws(WebImageError) -> [AgedImage] {
        // Reserved: a growing array would take twice as much memory, and three times during the copy.
        let part = Double(excess) / Double(max(1, report.remaining.size))
        var oldest = Heap<AgedImage>(minimumCapacity: Int(Double(report.remaining.count) * min(1, part * 1.1)))
        var sum = 0
        for index in 0..<CacheKey.leafCount {
            try checkCancelled()
            guard let leaf = directory.folder(CacheKey.leaf(index)) else { continue }
            for (name, status) in try account.images(leaf: index) {
                let candidate = Candidate(
                    name: name, leaf: index, status: status, date: date(name, status, leaf.descriptor))
                // A dry run has already counted these as removed.
                if rules.isDryRun, reason(candidate) != nil { continue }
                if candidate.changed >= protectedSince {
                    protected.add(size: candidate.size)
                    continue
                }
                let image = AgedImage(candidate)
                if sum >= excess, let newest = oldest.max, newest < image { continue }
                oldest.insert(image)
                sum += image.size
                // An older image may push the newest of them out.
                while let newest = oldest.max, sum - newest.size >= excess {
                    oldest.removeMax()
                    sum -= newest.size
                }
            }
        }
        var victims = oldest.unordered
        // Releases the heap's reference, so that the array is sorted in place.
        oldest = Heap()
        victims.sort { ($0.prefix, $0.date) < ($1.prefix, $1.date) }
        return victims
    }

    /// Removes images of one leaf directory, in name order, until the total size reaches `end`. Looks each up again by its prefix; one with
    /// a different date is not the selected one.
    private mutating func evict(_ victims: ArraySlice<AgedImage>, until end: Int) throws(WebImageError) {
        guard let index = victims.first?.leaf else { return }
        let path = CacheKey.leaf(index)
        guard let leaf = directory.folder(path) else { return }
        var rest = victims
        for name in try directory.names(in: path, length: CacheKey.nameLength) {
            guard let prefix = AgedImage.prefix(leaf: index, name: name) else { continue }
            while let gone = rest.first, gone.prefix < prefix {
                // Removed by another process.
                report.remaining.remove(size: gone.size)
                rest.removeFirst()
            }
            guard let next = rest.first, size > end else { return }
            guard next.prefix == prefix else { continue }
            try checkCancelled()
            var status = stat()
            guard fstatat(leaf.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
            let image = Candidate(name: name, leaf: index, status: status, date: date(name, status, leaf.descriptor))
            // Prefixes practically never collide.
            let alike = rest.prefix { $0.prefix == prefix }
            guard let match = alike.firstIndex(where: { $0.date == image.date }) else {
                report.spared.add(size: next.size)
                rest.removeFirst()
                continue
            }
            if match == rest.startIndex { rest.removeFirst() } else { rest.remove(at: match) }
            try remove(image, from: leaf.descriptor, .size)
        }
        for gone in rest { report.remaining.remove(size: gone.size) }
    }

    /// Current total size: by the account, which other processes update, or by the count.
    private var size: Int { rules.isDryRun ? report.remaining.size : account.totals?.size ?? report.remaining.size }

    private mutating func remove(
        _ image: Candidate, from leaf: Int32, _ reason: SweepRules.Reason
    ) throws(WebImageError) {
        guard image.changed < protectedSince else { return report.spared.add(size: image.size) }
        let path = "\(directory.path)/\(CacheKey.leaf(image.leaf))/\(image.name)"
        let swept = SweptImage(
            path: path, size: image.size, date: Int(image.date / 1_000_000_000), reason: reason)
        if !rules.isDryRun {
            pace.step(isOver)
            try checkCancelled()
        }
        visit(swept)
        if !rules.isDryRun {
            switch unlink(image, from: leaf) {
            case nil: return report.spared.add(size: image.size)
            case 0: break
            // Removed by another process.
            case ENOENT: return report.remaining.remove(size: image.size)
            case let code?: throw directory.fault("remove an image", code: code)
            }
        }
        report.remaining.remove(size: image.size)
        switch reason {
        case .age: report.expired.add(size: image.size)
        case .size: report.evicted.add(size: image.size)
        case .unlisted: report.unlisted.add(size: image.size)
        }
    }

    /// Nil if it is in use or has changed; otherwise 0 or an errno.
    private func unlink(_ image: Candidate, from leaf: Int32) -> Int32? {
        guard let locks, let key = image.key else { return nil }
        let byte = TransferLockFiles.Byte(key)
        guard locks.tryLock(byte) else { return nil }
        defer { locks.unlock(byte) }
        guard let leaf = FolderLock(leaf) else { return errno }
        var status = stat()
        guard fstatat(leaf.descriptor, image.name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return errno }
        guard status.st_ino == image.inode, nanoseconds(status.st_ctim) == image.changed else { return nil }
        return leaves.unlink(image.name, of: leaf, index: image.leaf, length: Int(status.st_size))
    }

    private func date(_ name: String, _ status: stat, _ leaf: Int32) -> Int64 {
        switch expireType {
        case .accessDate: return nanoseconds(status.st_atim)
        case .modificationDate: return nanoseconds(status.st_mtim)
        case .changeDate: return nanoseconds(status.st_ctim)
        case .creationDate:
            var birth = timespec()
            return nanoseconds(clinux_birth_time(leaf, name, &birth) == 0 ? birth : status.st_mtim)
        }
    }

    private func checkCancelled() throws(WebImageError) {
        if isOver() { throw WebImageError(.cancelled, "the sweep of the cache was cancelled") }
    }

    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return nanoseconds(time)
    }

    private struct Candidate {
        let name: String
        let leaf: Int
        let size: Int
        let inode: ino_t
        let changed: Int64
        let date: Int64

        init(name: String, leaf: Int, status: stat, date: Int64) {
            self.name = name
            self.leaf = leaf
            self.date = date
            size = CacheAccount.blocks(Int(status.st_size)) * CacheAccount.block
            inode = status.st_ino
            changed = nanoseconds(status.st_ctim)
        }

        var key: CacheKey? {
            let text = String(leaf, radix: 16)
            return Digest(hex: (text.count < 2 ? "0" : "") + text + name).map { CacheKey($0) }
        }
    }

    private struct AgedImage: Comparable {
        let date: Int64
        /// The first eight bytes of the key's digest, in the same order as names.
        let prefix: UInt64
        private let blocks: UInt32

        init(_ image: Candidate) {
            date = image.date
            prefix = Self.prefix(leaf: image.leaf, name: image.name) ?? 0
            blocks = UInt32(clamping: image.size / CacheAccount.block)
        }

        var leaf: Int { Int(prefix >> 56) }
        var size: Int { Int(blocks) * CacheAccount.block }

        /// Nil if it is not the name of an image.
        static func prefix(leaf: Int, name: String) -> UInt64? {
            UInt64(name.prefix(14), radix: 16).map { UInt64(leaf) << 56 | $0 }
        }

        static func < (lhs: AgedImage, rhs: AgedImage) -> Bool {
            (lhs.date, lhs.prefix) < (rhs.date, rhs.prefix)
        }
    }
}

/// Since 1970.
private func nanoseconds(_ time: timespec) -> Int64 {
    // Clamped: file dates are arbitrary, and 64 bits of nanoseconds end in the year 2262.
    let seconds = min(max(Int64(time.tv_sec), -9_000_000_000), 9_000_000_000)
    return seconds * 1_000_000_000 + Int64(time.tv_nsec)
}

extension SweepReport.Sum {
    fileprivate mutating func remove(size: Int) {
        count -= 1
        self.size -= size
    }
}
