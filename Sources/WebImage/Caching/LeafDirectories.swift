internal import CLinux
internal import Glibc
internal import Threading

/// The 256 directories that the images of a cache are in, `v1/a/b`.
///
/// A cache keeps them open, so that a store does not open and close one: four calls and a walk along the path less for each image. As many
/// as a quarter of the process' descriptors; the others are opened each time. A directory that is removed behind it is found out by the
/// store, which fails with ENOENT, forgets it and makes it anew.
final class LeafDirectories: Sendable {
    private struct State {
        var descriptors = [Int32](repeating: -1, count: CacheKey.leafCount)
        /// Forgotten ones, open as long as somebody may use them.
        var abandoned: [Int32] = []
        var room: Int
    }

    private let directory: CacheDirectory
    private let account: CacheAccount
    private let quarantine: Quarantine
    private let isSynced: Bool
    private let state: Locked<State>

    /// Those of a cache.
    ///
    /// * `isSynced`: whether a directory that is made is written out before it is used, and each is opened so that it can be.
    init(_ directory: CacheDirectory, _ account: CacheAccount, _ quarantine: Quarantine, isSynced: Bool) {
        (self.directory, self.account, self.quarantine) = (directory, account, quarantine)
        self.isSynced = isSynced
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        state = Locked(State(room: isKnown ? Int(min(limit.rlim_cur / 4, rlim_t(CacheKey.leafCount))) : 0))
    }

    deinit {
        state.withLock { state in
            for descriptor in state.descriptors + state.abandoned where descriptor >= 0 { close(descriptor) }
        }
    }

    // MARK: Opening

    /// An open leaf directory: kept by its cache, or closed with this value.
    struct Leaf: ~Copyable {
        let descriptor: Int32
        private let own: OpenFile?

        fileprivate init(kept descriptor: Int32) {
            self.descriptor = descriptor
            own = nil
        }

        fileprivate init(own file: consuming OpenFile) {
            descriptor = file.descriptor
            own = consume file
        }
    }

    /// The one that is kept for a key. It stays open as long as this object, forgotten or not.
    func descriptor(_ key: CacheKey) -> Int32? {
        let descriptor = state.withLock { $0.descriptors[key.leafIndex] }
        return descriptor >= 0 ? descriptor : nil
    }

    /// Opens the directory of a key for a store, and makes it where it is missing; what stands in its place is moved aside.
    /// - Throws: `localFault`.
    func open(_ key: CacheKey) throws(WebImageError) -> Leaf {
        // O_PATH is enough to put a name into it; fsync wants a real descriptor.
        if !isSynced, let kept = descriptor(key) { return Leaf(kept: kept) }
        let path = key.leaf
        let flags = isSynced ? O_RDONLY | O_DIRECTORY | O_CLOEXEC : clinux_directory_flags()
        var leaf = directory.open(path, flags)
        // More than once where what stood in its place comes back.
        for _ in 0..<3 where leaf == nil {
            guard errno == ENOENT || Quarantine.isObstacle(errno) else { throw directory.fault("store an image") }
            if errno != ENOENT { quarantine.clearWay(to: key) }
            try make(path)
            if isSynced {
                for part in [".", "v1", "v1/" + path.dropFirst(3).prefix(1)] {
                    let parent = directory.open(part, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                    guard let parent, fsync(parent.descriptor) == 0 else {
                        throw directory.fault("make the directory \(path)")
                    }
                }
            }
            leaf = directory.open(path, flags)
        }
        guard let leaf else { throw directory.fault("store an image") }
        return isSynced ? Leaf(own: leaf) : keep(leaf, key)
    }

    /// The innermost first: most often only that one is missing.
    private func make(_ path: String) throws(WebImageError) {
        if directory.makeFolder(path) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/") else {
            throw directory.fault("make the directory \(path)")
        }
        try make(String(path[..<slash]))
        guard directory.makeFolder(path) == 0 || errno == EEXIST else {
            throw directory.fault("make the directory \(path)")
        }
    }

    /// Keeps a directory open where there is room, and hands it back.
    private func keep(_ leaf: consuming OpenFile, _ key: CacheKey) -> Leaf {
        let descriptor = leaf.descriptor
        let isKept = state.withLock { state in
            guard state.room > 0, state.descriptors[key.leafIndex] < 0 else { return false }
            state.room -= 1
            state.descriptors[key.leafIndex] = descriptor
            return true
        }
        return isKept ? Leaf(kept: leaf.release()) : Leaf(own: leaf)
    }

    /// Keeps it no longer; false where none was kept. Another thread may be using it, so it is never closed before the cache.
    func forget(_ key: CacheKey) -> Bool {
        state.withLock { state in
            guard state.descriptors[key.leafIndex] >= 0 else { return false }
            state.abandoned.append(state.descriptors[key.leafIndex])
            state.descriptors[key.leafIndex] = -1
            return true
        }
    }

    // MARK: Files

    /// The number of the inode that a key's name belongs to; 0 where there is none.
    func inode(of key: CacheKey) -> UInt {
        var status = stat()
        guard let leaf = directory.folder(key.leaf),
            fstatat(leaf.descriptor, key.name, &status, AT_SYMLINK_NOFOLLOW) == 0
        else { return 0 }
        return UInt(status.st_ino)
    }

    /// Removes an image's file, its record's file with it, and takes it off the account. The caller has locked the directory.
    /// - Returns: 0 or an errno.
    func unlink(_ name: String, of leaf: borrowing FolderLock, index: Int, length: Int) -> Int32 {
        guard unlinkat(leaf.descriptor, name, 0) == 0 else { return errno }
        // Last: without it the image would only be unverified, without the image it means nothing.
        unlinkat(leaf.descriptor, name + CacheRecord.fileSuffix, 0)
        account.add(images: -1, blocks: -CacheAccount.blocks(length), leaf: index)
        return 0
    }

    // MARK: Listing

    /// `v1/a/b` of every one there is, in the order of the keys.
    func paths() throws(WebImageError) -> [String] {
        var paths: [String] = []
        for first in try directory.names(in: "v1", length: 1) {
            paths += try names(in: "v1/\(first)", length: 1).map { "v1/\(first)/\($0)" }
        }
        return paths
    }

    /// Visits the images of one leaf directory; files that come or go meanwhile may be visited or not. What is no image of the cache
    /// (temporary files, records) is passed over.
    func walk(
        _ path: String, _ visit: (_ key: CacheKey, _ leaf: Int32, _ name: String) throws(WebImageError) -> Void
    ) throws(WebImageError) {
        guard let leaf = directory.folder(path) else { return }
        let digits = path.filter { $0 != "/" }.dropFirst(2)
        for name in try names(in: path, length: CacheKey.nameLength) {
            guard let digest = Digest(hex: digits + name) else { continue }
            try visit(CacheKey(digest), leaf.descriptor, name)
        }
    }

    /// Names as ``CacheDirectory/names(in:length:)`` has them; none where a symbolic link stands in the directory's place, which
    /// ``CacheAudit/strays(movesAside:_:)`` names.
    func names(in path: String, length: Int?) throws(WebImageError) -> [String] {
        do throws(WebImageError) { return try directory.names(in: path, length: length) } catch {
            guard error.underlyingCode == ELOOP || error.underlyingCode == EXDEV else { throw error }
            return []
        }
    }
}
