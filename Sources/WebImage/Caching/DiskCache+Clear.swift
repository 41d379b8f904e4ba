internal import CLinux
internal import Glibc

extension DiskCache {
    /// A directory that changed since then, in seconds, is not removed: a store that has just made it is about to use it.
    private static let youth = 60

    /// Removes every image, and the directories they were in unless they changed within the last minute; `.prefetch`, its lock files and
    /// `bad` stay. Whoever has an image open keeps it.
    ///
    /// Safe while others store: an image that is stored meanwhile is there whole or not at all.
    /// - Returns: how many images were removed.
    /// - Throws: `localFault`; `cancelled` where the task is cancelled, what was removed until then is gone.
    @discardableResult
    public func clear() throws(WebImageError) -> Int {
        guard !configuration.isReadOnly else { throw fault("remove an image", code: EROFS) }
        let limit = Self.now() - Self.youth
        var removed = 0
        for first in try names(in: "v1", length: 1) {
            guard let directory = try openDirectory("v1/\(first)") else { continue }
            let isOld = Self.isOld(directory.descriptor, limit)
            for second in try names(in: "v1/\(first)", length: 1) {
                guard !Task.isCancelled else { throw WebImageError(.cancelled, "clearing the cache was cancelled") }
                guard let leaf = try openDirectory("v1/\(first)/\(second)") else { continue }
                // Asked before the images go, which changes it.
                let isOld = Self.isOld(leaf.descriptor, limit)
                let index = Int(first + second, radix: 16) ?? 0
                removed += try removeImages(in: "v1/\(first)/\(second)", leaf.descriptor, index)
                // With anything in it, it stays: a file that came meanwhile, or a temporary one.
                if isOld { unlinkat(directory.descriptor, second, AT_REMOVEDIR) }
            }
            if isOld, let parent = try openDirectory("v1") { unlinkat(parent.descriptor, first, AT_REMOVEDIR) }
        }
        return removed
    }

    private func removeImages(in path: String, _ leaf: Int32, _ index: Int) throws(WebImageError) -> Int {
        var removed = 0
        guard let leaf = Self.lockFolder(leaf) else { throw fault("remove images") }
        for name in try names(in: path, length: 62) {
            var status = stat()
            guard fstatat(leaf.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT == S_IFREG
            else {
                // A link or a FIFO that somebody put here goes too, and is not in the account.
                if unlinkat(leaf.descriptor, name, 0) == 0 { removed += 1 }
                continue
            }
            switch unlink(name, of: leaf.descriptor, index: index, length: Int(status.st_size)) {
            case 0: removed += 1
            case ENOENT: break
            case let code: throw fault("remove an image", code: code)
            }
        }
        return removed
    }

    /// Nil where there is none any more, or what stands there is none.
    private func openDirectory(_ path: String) throws(WebImageError) -> OpenFile? {
        if let directory = OpenFile(clinux_open_beneath(root, path, clinux_directory_flags(), 0)) { return directory }
        guard errno == ENOENT || Self.isObstacle(errno) else { throw fault("remove images") }
        return nil
    }

    private static func isOld(_ directory: Int32, _ limit: Int) -> Bool {
        var status = stat()
        return fstat(directory, &status) == 0 && status.st_mtim.tv_sec < limit
    }

    /// Stores as ``store(_:for:record:validators:replacing:keepsValidators:)`` does, and again where ``clear()`` took the directory away between two of
    /// its steps: a file without a name does not keep its directory from being removed.
    @discardableResult
    package func storeBesideClearing(
        _ body: ImageBody, for key: CacheKey, record: CacheRecord, validators: HTTPValidators? = nil,
        replacing: Bool = false, keepsValidators: Bool = false
    ) throws(WebImageError) -> StoreResult {
        // A clear takes the image's directory away at most once, and the one above; what is made anew is young. Two may be under way.
        for _ in 0..<4 {
            do throws(WebImageError) {
                return try store(
                    body, for: key, record: record, validators: validators, replacing: replacing,
                    keepsValidators: keepsValidators)
            } catch {
                // EPERM: ext4's answer to an unnamed file in a directory that is gone.
                guard error.underlyingCode == ENOENT || error.underlyingCode == EPERM else { throw error }
                // A directory can be opened by its name until its removal is over; making it anew waits for that.
                if let parent = try openDirectory("v1/\(key.leaf.dropFirst(3).prefix(1))") {
                    mkdirat(parent.descriptor, String(key.leaf.suffix(1)), 0o777)
                }
            }
        }
        return try store(
            body, for: key, record: record, validators: validators, replacing: replacing,
            keepsValidators: keepsValidators)
    }
}
