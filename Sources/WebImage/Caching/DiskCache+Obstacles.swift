internal import CLinux
internal import Glibc

// Symbolic links, pipes, sockets, devices and the like where only a directory or a file of the cache may be. Such a thing is damage of one
// image, or of the images of one directory: it is moved into `bad/` under its own name's lock, and what it leads to is not touched.
extension DiskCache {
    /// Whether an open that failed with this code met something that is neither a directory nor a file of the cache: a symbolic link (ELOOP),
    /// a file where a directory should be (ENOTDIR), a socket or a device without a driver (ENXIO, ENODEV).
    static func isObstacle(_ code: Int32?) -> Bool { [ELOOP, ENOTDIR, ENXIO, ENODEV].contains(code) }

    /// Moves whatever stands in the place of an image, or of a directory above it, into `bad/`. The account of the directories is counted anew.
    ///
    /// * `isLocked`: whether the caller has locked the leaf directory.
    /// - Returns: whether something was moved. Nothing is in a cache that is only looked up, and where another process was first.
    @discardableResult
    func clearWay(to key: CacheKey, isLocked: Bool = false) -> Bool {
        guard !configuration.isReadOnly, var parent = directory(".") else { return false }
        let leaf = key.leaf.split(separator: "/").map(String.init)
        for (depth, name) in leaf.enumerated() {
            if let next = OpenFile(clinux_open_beneath(parent.descriptor, name, clinux_directory_flags(), 0)) {
                parent = next
                continue
            }
            guard moveObstacleAside(name, of: parent.descriptor) else { return false }
            // The directories that were reached by this name: one, the 16 of a first digit, or all.
            let first = depth == 0 ? 0 : key.leafIndex & (depth == 1 ? 0xF0 : 0xFF)
            let count = depth == 0 ? CacheKey.leafCount : depth == 1 ? 16 : 1
            for index in first..<first + count { _ = try? recount(leaf: index) }
            return true
        }
        var status = stat()
        guard fstatat(parent.descriptor, key.name, &status, AT_SYMLINK_NOFOLLOW) == 0,
            status.st_mode & S_IFMT != S_IFREG
        else { return false }
        return moveAside(key, inode: UInt(status.st_ino), isLocked: isLocked)
    }

    /// Moves what has a directory's name and is none into `bad/`; looks once more under the lock of the folder it is in, so that a
    /// directory that another process has just made there stays.
    func moveObstacleAside(_ name: String, of parent: Int32) -> Bool {
        guard let bad = openBad(), let lock = Self.lockFolder(parent) else { return false }
        var status = stat()
        guard fstatat(lock.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT != S_IFDIR
        else { return false }
        return renameat(lock.descriptor, name, bad.descriptor, Self.strayName()) == 0
    }

    /// A name in `bad/` for what is no image.
    static func strayName() -> String { "stray-\(String(UInt64.random(in: 0 ... .max), radix: 16))" }

    /// Runs a system call that takes a directory and a name with the directory a path of the cache leads to and its last component:
    /// mkdirat(2), unlinkat(2) and linkat(2) would follow a symbolic link on the way.
    /// - Returns: what the call returns; -1 with `errno` where the way is not free.
    static func beneath(_ root: Int32, _ path: String, _ call: (_ folder: Int32, _ name: String) -> Int32) -> Int32 {
        guard let slash = path.lastIndex(of: "/") else { return call(root, path) }
        guard let folder = OpenFile(clinux_open_beneath(root, String(path[..<slash]), clinux_directory_flags(), 0))
        else { return -1 }
        return call(folder.descriptor, String(path[path.index(after: slash)...]))
    }

    /// mkdirat(2) below the cache, following no link. Returns 0, or -1 with `errno`.
    func makeFolder(_ path: String) -> Int32 { Self.beneath(root, path) { mkdirat($0, $1, 0o777) } }

    /// unlinkat(2) below the cache, following no link.
    func removeName(_ path: String) { _ = Self.beneath(root, path) { unlinkat($0, $1, 0) } }
}
