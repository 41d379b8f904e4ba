internal import CLinux
internal import Glibc

extension DiskCache {
    /// How many images there are and what they take of the disk, in blocks of 4 KiB as `du` counts them: known without a walk, and the
    /// same for all processes on the cache. Counted anew where nobody knows, as after a restart of the machine.
    /// - Throws: `localFault` where it has to be counted and cannot be.
    public func diskUsage() throws(WebImageError) -> (count: Int, size: Int) {
        account?.refresh()
        if let known = account?.totals { return (known.count, known.size) }
        let counted = try recount()
        return (counted.count, counted.size)
    }

    /// What the images take of the disk as far as it is known without asking the disk.
    package var knownSize: Int? { account?.totals?.size }

    /// How many there are beside it, as far as that is known so.
    package var knownTotals: (count: Int, size: Int)? { account?.totals.map { ($0.count, $0.size) } }

    /// Counts every leaf directory and sets the account right.
    @discardableResult
    func recount() throws(WebImageError) -> CacheAccount.Totals {
        var totals = CacheAccount.Totals()
        for leaf in 0..<CacheKey.leafCount {
            let found = try recount(leaf: leaf)
            for (_, status) in found { totals.add(status) }
        }
        account?.finishCount()
        return account?.totals ?? totals
    }

    /// Counts one leaf directory and sets the account right.
    /// - Returns: its images.
    func recount(leaf index: Int) throws(WebImageError) -> [(name: String, status: stat)] {
        var found: [(name: String, status: stat)] = []
        func count() throws(WebImageError) -> CacheAccount.Totals {
            found = try list(leaf: index)
            var totals = CacheAccount.Totals()
            for (_, status) in found { totals.add(status) }
            return totals
        }
        if let account { try account.recount(leaf: index, count) } else { _ = try count() }
        return found
    }

    /// The images of one leaf directory. What has an image's name and is no file is left out.
    func list(leaf index: Int) throws(WebImageError) -> [(name: String, status: stat)] {
        let path = Self.leafPath(index)
        guard let leaf = OpenFile(clinux_open_beneath(root, path, clinux_directory_flags(), 0)) else {
            // What stands in its place is moved aside by the next that wants an image of it.
            guard errno == ENOENT || Self.isObstacle(errno) else { throw fault("list \(path)") }
            return []
        }
        var found: [(name: String, status: stat)] = []
        for name in try names(in: path, length: 62) {
            var status = stat()
            guard fstatat(leaf.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
                status.st_mode & S_IFMT == S_IFREG
            else { continue }
            found.append((name, status))
        }
        return found
    }

    /// `v1/a/b` of a leaf directory's number.
    static func leafPath(_ index: Int) -> String {
        "v1/\(String(index >> 4, radix: 16))/\(String(index & 15, radix: 16))"
    }
}

extension CacheAccount.Totals {
    mutating func add(_ status: stat) {
        count += 1
        size += CacheAccount.blocks(Int(status.st_size)) * CacheAccount.block
    }
}

extension DiskCache {
    /// Bytes of its file system that this user may still fill; nil where that is not known.
    package var freeSize: Int? {
        var facts = statvfs()
        guard fstatvfs(root, &facts) == 0 else { return nil }
        return Int(
            clamping: UInt64(facts.f_bavail).multipliedReportingOverflow(by: UInt64(facts.f_frsize)).partialValue)
    }
}

// MARK: - Known

extension DiskCache {
    /// How many images there are and the bytes they take of the disk, as all processes have noted; nil where nobody has counted yet. Costs no
    /// walk.
    package func known() -> (count: Int, size: Int)? {
        account?.refresh()
        return account?.totals.map { ($0.count, $0.size) }
    }
}
