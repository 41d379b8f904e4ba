internal import CLinux
internal import Glibc

/// `bad/`, where a cache puts damaged files and obstacles: nothing is read from there, so they are misses. Symbolic links, pipes, sockets,
/// devices and the like in place of a directory or a file of the cache damage one image, or the images of one directory: they are moved
/// under the lock of their folder, and link targets are not touched.
final class Quarantine: Sendable {
    private static let path = "bad"

    private let directory: CacheDirectory
    private let account: CacheAccount

    init(_ directory: CacheDirectory, _ account: CacheAccount) { (self.directory, self.account) = (directory, account) }

    /// Whether the error of an open means an obstacle, neither a directory nor a file of the cache: a symbolic link (ELOOP), a file in
    /// place of a directory (ENOTDIR), a socket or a device without a driver (ENXIO, ENODEV).
    static func isObstacle(_ code: Int32?) -> Bool { [ELOOP, ENOTDIR, ENXIO, ENODEV].contains(code) }

    /// Moves the file of a key with its record file. Does nothing if another file has taken the name meanwhile.
    /// * `inode`: inode of the file.
    /// * `isLocked`: whether the caller has locked the leaf directory.
    /// - Returns: whether it was moved.
    @discardableResult
    func moveImage(_ key: CacheKey, inode: UInt, isLocked: Bool = false) -> Bool {
        guard !directory.isReadOnly, let bad = open() else { return false }
        if isLocked {
            guard let leaf = directory.folder(key.leaf) else { return false }
            return moveImage(key, inode: inode, from: leaf.descriptor, to: bad.descriptor)
        }
        guard let leaf = FolderLock(directory.descriptor, key.leaf) else { return false }
        return moveImage(key, inode: inode, from: leaf.descriptor, to: bad.descriptor)
    }

    private func moveImage(_ key: CacheKey, inode: UInt, from leaf: Int32, to bad: Int32) -> Bool {
        var status = stat()
        guard fstatat(leaf, key.name, &status, AT_SYMLINK_NOFOLLOW) == 0, UInt(status.st_ino) == inode else {
            return false
        }
        let name = "\(key.digest.hex)-\(String(UInt32.random(in: 0 ... .max), radix: 16))"
        guard renameat(leaf, key.name, bad, name) == 0 else { return false }
        if status.st_mode & S_IFMT == S_IFREG {
            account.add(images: -1, blocks: -CacheAccount.blocks(Int(status.st_size)), leaf: key.leafIndex)
        }
        renameat(leaf, key.name + CacheRecord.fileSuffix, bad, name + CacheRecord.fileSuffix)
        return true
    }

    /// Moves obstacles in place of an image or of a directory above it. Affected directories are recounted.
    /// * `isLocked`: whether the caller has locked the leaf directory.
    /// - Returns: whether an obstacle was moved; not in a read-only cache, or if another process was faster.
    @discardableResult
    func clearWay(to key: CacheKey, isLocked: Bool = false) -> Bool {
        guard !directory.isReadOnly, var parent = directory.folder(".") else { return false }
        let leaf = key.leaf.split(separator: "/").map(String.init)
        for (depth, name) in leaf.enumerated() {
            if let next = OpenFile(clinux_open_beneath(parent.descriptor, name, clinux_directory_flags(), 0)) {
                parent = next
                continue
            }
            guard moveObstacle(name, of: parent.descriptor) else { return false }
            // The leaf directories below this name: one, the 16 of a first digit, or all.
            let first = depth == 0 ? 0 : key.leafIndex & (depth == 1 ? 0xF0 : 0xFF)
            let count = depth == 0 ? CacheKey.leafCount : depth == 1 ? 16 : 1
            for index in first..<first + count { _ = try? account.recount(leaf: index) }
            return true
        }
        var status = stat()
        guard fstatat(parent.descriptor, key.name, &status, AT_SYMLINK_NOFOLLOW) == 0,
            status.st_mode & S_IFMT != S_IFREG
        else { return false }
        return moveImage(key, inode: UInt(status.st_ino), isLocked: isLocked)
    }

    /// Moves an obstacle with a directory's name; checks again under the parent's lock, to keep a directory just created by others.
    /// - Returns: whether it was moved.
    func moveObstacle(_ name: String, of parent: Int32) -> Bool {
        guard let bad = open(), let lock = FolderLock(parent) else { return false }
        var status = stat()
        guard fstatat(lock.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT != S_IFDIR
        else { return false }
        return renameat(lock.descriptor, name, bad.descriptor, Self.strayName()) == 0
    }

    /// Moves an entry with a foreign name, or a non-file with a record's name.
    /// - Returns: whether it was moved.
    func moveStray(_ name: String, of parent: Int32) -> Bool {
        guard !directory.isReadOnly, let bad = open() else { return false }
        return renameat(parent, name, bad.descriptor, Self.strayName()) == 0
    }

    /// Removes files moved here that long ago, with their records.
    /// - Returns: the number of files.
    func removeOld(olderThan seconds: Double, isDryRun: Bool) throws(WebImageError) -> Int {
        guard let bad = directory.folder(Self.path) else {
            guard errno == ENOENT else { throw directory.fault("list \(Self.path)") }
            return 0
        }
        let limit = Double(WallClock.seconds) - seconds
        var removed = 0
        for name in try directory.names(in: Self.path, length: nil) where name != "." && name != ".." {
            var status = stat()
            // The change date: a rename sets it, but not the others.
            guard fstatat(bad.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
                status.st_mode & S_IFMT != S_IFDIR, Double(status.st_ctim.tv_sec) <= limit,
                isDryRun || unlinkat(bad.descriptor, name, 0) == 0
            else { continue }
            removed += 1
        }
        return removed
    }

    /// The directory; nil with `errno`. An obstacle in its place is renamed.
    private func open() -> OpenFile? {
        mkdirat(directory.descriptor, Self.path, 0o777)
        if let bad = directory.folder(Self.path) { return bad }
        guard Self.isObstacle(errno), let lock = FolderLock(directory.descriptor) else { return nil }
        var status = stat()
        if fstatat(lock.descriptor, Self.path, &status, AT_SYMLINK_NOFOLLOW) == 0,
            status.st_mode & S_IFMT != S_IFDIR
        {
            renameat(lock.descriptor, Self.path, lock.descriptor, "\(Self.path)-\(Self.strayName())")
        }
        mkdirat(lock.descriptor, Self.path, 0o777)
        return directory.folder(Self.path)
    }

    private static func strayName() -> String { "stray-\(String(UInt64.random(in: 0 ... .max), radix: 16))" }
}
