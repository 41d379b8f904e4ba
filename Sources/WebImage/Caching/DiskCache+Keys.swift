internal import CLinux
internal import Glibc

/// SDWebImage's SDDiskCache, by keys as strings.
extension DiskCache {
    /// Whether there is an image under the key, whole by its record or without one.
    public func containsData(forKey key: String) -> Bool {
        (try? lookup(CacheKey(key), atLeast: .none)) != nil
    }

    /// Where the image of a key is, or would be.
    public func cachePath(forKey key: String) -> String { cachePath(of: CacheKey(key)) }

    /// Where an image is, or would be.
    func cachePath(of key: CacheKey) -> String { "\(directory)/\(key.path)" }

    /// The bytes stored under a key; nil where there are none.
    /// - Throws: `localFault`.
    public func data(forKey key: String) throws(WebImageError) -> [UInt8]? {
        try lookup(CacheKey(key), atLeast: .none)?.bytes()
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
        guard let leaf = OpenFile(clinux_open_beneath(root, key.leaf, clinux_directory_flags(), 0)) else {
            guard errno == ENOENT else { throw fault("remove an image") }
            return false
        }
        let removed = unlinkat(leaf.descriptor, key.name, 0) == 0
        guard removed || errno == ENOENT else { throw fault("remove an image") }
        // Last: without it the image would only be unverified, without the image it means nothing.
        unlinkat(leaf.descriptor, key.name + Self.sidecarSuffix, 0)
        return removed
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
            usage.size += Int(status.st_size)
        }
        return usage
    }
}
