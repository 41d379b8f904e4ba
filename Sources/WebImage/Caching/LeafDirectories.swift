internal import CLinux
internal import Glibc
internal import Threading

/// The 256 directories of a cache's images, `v1/a/b`. They are kept open, which saves four calls and a path walk per stored image, but use
/// at most a quarter of the process' descriptors; the others are opened each time. If an open directory is removed, the store fails with
/// ENOENT, drops and recreates it.
final class LeafDirectories: Sendable {
    private struct State {
        var descriptors = [Int32](repeating: -1, count: CacheKey.leafCount)
        /// Dropped descriptors, kept open because they may still be in use.
        var abandoned: [Int32] = []
        var room: Int
    }

    private let directory: CacheDirectory
    private let account: CacheAccount
    private let quarantine: Quarantine
    private let isSynced: Bool
    private let state: Locked<State>

    /// * `isSynced`: whether new directories are synced before use, and opened in a way that allows it.
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

    /// An open leaf directory: owned by the cache, or closed with this value.
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

    /// The cached descriptor for a key; stays open for the lifetime of this object.
    func descriptor(_ key: CacheKey) -> Int32? {
        let descriptor = state.withLock { $0.descriptors[key.leafIndex] }
        return descriptor >= 0 ? descriptor : nil
    }

    /// Opens the directory of a key for a store, creating it if missing; obstacles are moved aside.
    func open(_ key: CacheKey) throws(WebImageError) -> Leaf {
        // O_PATH suffices for creating names; fsync requires a regular descriptor.
        if !isSynced, let kept = descriptor(key) { return Leaf(kept: kept) }
        let path = key.leaf
        let flags = isSynced ? O_RDONLY | O_DIRECTORY | O_CLOEXEC : clinux_directory_flags()
        var leaf = directory.open(path, flags)
        // Repeated in case an obstacle comes back.
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

    /// Innermost first: usually only that one is missing.
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

    /// Drops the cached descriptor; false if there was none. It is not closed before the cache, because another thread may be using it.
    func forget(_ key: CacheKey) -> Bool {
        state.withLock { state in
            guard state.descriptors[key.leafIndex] >= 0 else { return false }
            state.abandoned.append(state.descriptors[key.leafIndex])
            state.descriptors[key.leafIndex] = -1
            return true
        }
    }

    // MARK: Files

    func inode(of key: CacheKey) -> UInt {
        var status = stat()
        guard let leaf = directory.folder(key.leaf),
            fstatat(leaf.descriptor, key.name, &status, AT_SYMLINK_NOFOLLOW) == 0
        else { return 0 }
        return UInt(status.st_ino)
    }

    /// Removes an image's file, its record file and its account entry. The caller has locked the directory.
    /// - Returns: 0 or an errno.
    func unlink(_ name: String, of leaf: borrowing FolderLock, index: Int, length: Int) -> Int32 {
        guard unlinkat(leaf.descriptor, name, 0) == 0 else { return errno }
        // Last: without it the image would merely be unverified; without the image it has no effect.
        unlinkat(leaf.descriptor, name + CacheRecord.fileSuffix, 0)
        account.add(images: -1, blocks: -CacheAccount.blocks(length), leaf: index)
        return 0
    }

    // MARK: Listing

    /// Paths `v1/a/b` of the existing directories, in key order.
    func paths() throws(WebImageError) -> [String] {
        var paths: [String] = []
        for first in try directory.names(in: "v1", length: 1) {
            paths += try names(in: "v1/\(first)", length: 1).map { "v1/\(first)/\($0)" }
        }
        return paths
    }

    /// Visits the images of one leaf directory, without temporary files and records; concurrent additions and removals may be missed.
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

    /// Like ``CacheDirectory/names(in:length:)``; empty for a symbolic link, which ``CacheAudit/strays(movesAside:_:)`` reports.
    func names(in path: String, length: Int?) throws(WebImageError) -> [String] {
        do throws(WebImageError) { return try directory.names(in: path, length: length) } catch {
            guard error.underlyingCode == ELOOP || error.underlyingCode == EXDEV else { throw error }
            return []
        }
    }
}
