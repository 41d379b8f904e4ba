internal import CLinux
internal import Glibc

/// SDWebImage's SDDiskCache, by keys as strings.
extension DiskCache {
    /// Whether there is an image under the key, whole by its record or without one, here or in a read-only directory.
    public func containsData(forKey key: String) -> Bool { existingPath(forKey: key) != nil }

    /// Where the image of a key is, here or in a read-only directory; nil where there is none.
    public func existingPath(forKey key: String) -> String? {
        // Not a lookup: to ask is no use of it.
        if let entry = try? examined(CacheKey(key), level: .none) {
            if entry.isWhole { return entry.path }
            moveAside(entry)
        }
        for tier in tiers {
            if let entry = try? tier.entry(forKey: key, atLeast: .none) { return entry.path }
        }
        return nil
    }

    /// Where the image of a key is, or would be.
    public func cachePath(forKey key: String) -> String { cachePath(of: CacheKey(key)) }

    /// Where an image is, or would be.
    func cachePath(of key: CacheKey) -> String { "\(directory)/\(key.path)" }

    /// The bytes stored under a key; nil where there are none.
    /// - Throws: `localFault`.
    public func data(forKey key: String) throws(WebImageError) -> [UInt8]? {
        try lookup(forKey: key, atLeast: .none)?.bytes()
    }

    /// Removes the image of a key. Whoever has it open keeps it.
    /// - Returns: whether there was one.
    /// - Throws: `localFault`.
    @discardableResult
    public func removeData(forKey key: String) throws(WebImageError) -> Bool {
        try remove(CacheKey(key))
    }

    /// Removes an image.
    /// - Throws: `localFault`.
    @discardableResult
    public func remove(_ key: CacheKey) throws(WebImageError) -> Bool {
        guard !configuration.isReadOnly else { throw fault("remove an image", code: EROFS) }
        guard let leaf = Self.lockFolder(root, key.leaf) else {
            guard errno == ENOENT || Self.isObstacle(errno) else { throw fault("remove an image") }
            clearWay(to: key)
            return false
        }
        var status = stat()
        // What is no file is not in the account.
        let isFile =
            fstatat(leaf.descriptor, key.name, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_mode & S_IFMT == S_IFREG
        let code =
            isFile
            ? unlink(key.name, of: leaf.descriptor, index: key.leafIndex, length: Int(status.st_size))
            : unlinkat(leaf.descriptor, key.name, 0) == 0 || errno == EISDIR && clearWay(to: key, isLocked: true)
                ? 0 : errno
        guard code == 0 || code == ENOENT else { throw fault("remove an image", code: code) }
        return code == 0
    }

    /// Number of images; reads all directories.
    public var totalCount: Int { get throws(WebImageError) { try usage().count } }

    /// Sum of the images' lengths in bytes; reads all directories and asks for every file.
    public var totalSize: Int { get throws(WebImageError) { try usage().size } }

    /// Both in one walk.
    package func usage() throws(WebImageError) -> (count: Int, size: Int) {
        var usage = (count: 0, size: 0)
        try walk { _, leaf, name throws(WebImageError) in
            var status = stat()
            guard fstatat(leaf, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return }
            usage.count += 1
            usage.size = Plausible.sum(usage.size, Int(status.st_size))
        }
        return usage
    }
}
