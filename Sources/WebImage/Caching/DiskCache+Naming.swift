internal import CLinux
internal import Glibc

// Who takes a name away from a file, or gives it to another one, has the leaf directory locked while it looks which file that is and does
// so. Otherwise another's new image could get the name in between, and be the one that goes. Who gives a name that is free does not need
// the lock.
extension DiskCache {
    /// Locks a folder against others who do so, until it is closed, by the kernel where the process dies; nil with `errno`.
    static func lockFolder(_ parent: Int32, _ path: String = ".") -> OpenFile? {
        // A descriptor of its own: the caller's may be one that cannot be locked (O_PATH), or belong to several threads.
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
        guard let file = OpenFile(clinux_open_beneath(parent, path, flags, 0)) else { return nil }
        while flock(file.descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { return nil }
        }
        return file
    }

    /// Gives a temporary file a name that is free, in whatever way the file system has: a second name (the first one stays), a rename that
    /// replaces nothing, or, where it has neither (NFS has no such rename, vfat and some of FUSE no second names), a look and a rename
    /// with the folder locked.
    ///
    /// * `isLocked`: whether the caller has locked the folder already.
    /// - Returns: 0, or -1 with `errno`: `EEXIST` where the name is taken.
    package static func nameOnce(
        _ temporary: String, as name: String, in folder: Int32, isLocked: Bool = false
    ) -> Int32 {
        if linkat(folder, temporary, folder, name, 0) == 0 { return 0 }
        guard [EPERM, EOPNOTSUPP, ENOSYS].contains(errno) else { return -1 }
        if clinux_rename_noreplace(folder, temporary, folder, name) == 0 { return 0 }
        guard [EINVAL, ENOSYS, EOPNOTSUPP].contains(errno) else { return -1 }
        let lock = isLocked ? nil : lockFolder(folder)
        guard isLocked || lock != nil else { return -1 }
        var status = stat()
        var code = fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? EEXIST : errno
        if code == ENOENT { code = renameat(folder, temporary, folder, name) == 0 ? 0 : errno }
        _ = consume lock
        errno = code
        return code == 0 ? 0 : -1
    }

    /// Moves a damaged entry out of the way, into `bad/`; from then on it is a miss. Does nothing where another file has taken the
    /// name in the meantime.
    public func moveAside(_ entry: CacheEntry) { moveAside(entry, isLocked: false) }

    /// * `isLocked`: whether the caller has locked the leaf directory.
    /// - Returns: whether it was moved.
    @discardableResult
    func moveAside(_ entry: CacheEntry, isLocked: Bool) -> Bool {
        guard !entry.isElsewhere else { return false }
        return moveAside(entry.key, inode: entry.inode, isLocked: isLocked)
    }

    /// The same for what cannot be opened, by the number of its inode.
    func moveAside(_ key: CacheKey, inode: UInt, isLocked: Bool = false) -> Bool {
        guard !configuration.isReadOnly, let bad = openBad(),
            let leaf = isLocked
                ? OpenFile(clinux_open_beneath(root, key.leaf, clinux_directory_flags(), 0))
                : Self.lockFolder(root, key.leaf)
        else { return false }
        var status = stat()
        guard fstatat(leaf.descriptor, key.name, &status, AT_SYMLINK_NOFOLLOW) == 0, UInt(status.st_ino) == inode
        else { return false }
        let name = "\(key.digest.hex)-\(String(UInt32.random(in: 0 ... .max), radix: 16))"
        guard renameat(leaf.descriptor, key.name, bad.descriptor, name) == 0 else { return false }
        if status.st_mode & S_IFMT == S_IFREG {
            account?.add(images: -1, blocks: -CacheAccount.blocks(Int(status.st_size)), leaf: key.leafIndex)
        }
        renameat(leaf.descriptor, key.name + Self.sidecarSuffix, bad.descriptor, name + Self.sidecarSuffix)
        return true
    }

    /// The directory of what was moved aside; nil with `errno`. What stands in its own place gets another name beside it.
    func openBad() -> OpenFile? {
        mkdirat(root, "bad", 0o777)
        if let bad = OpenFile(clinux_open_beneath(root, "bad", clinux_directory_flags(), 0)) { return bad }
        guard Self.isObstacle(errno), let lock = Self.lockFolder(root) else { return nil }
        var status = stat()
        if fstatat(lock.descriptor, "bad", &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT != S_IFDIR {
            renameat(lock.descriptor, "bad", lock.descriptor, "bad-\(Self.strayName())")
        }
        mkdirat(lock.descriptor, "bad", 0o777)
        return OpenFile(clinux_open_beneath(root, "bad", clinux_directory_flags(), 0))
    }

    /// Removes a file of a leaf directory, its record's file with it, and notes that. The caller has locked the directory.
    /// - Returns: 0 or an errno.
    func unlink(_ name: String, of leaf: Int32, index: Int, length: Int) -> Int32 {
        guard unlinkat(leaf, name, 0) == 0 else { return errno }
        // Last: without it the image would only be unverified, without the image it means nothing.
        unlinkat(leaf, name + Self.sidecarSuffix, 0)
        account?.add(images: -1, blocks: -CacheAccount.blocks(length), leaf: index)
        return 0
    }

    /// The number of the inode that a key's name belongs to; 0 where there is none.
    func inode(of key: CacheKey) -> UInt {
        var status = stat()
        guard let leaf = directory(key.leaf), fstatat(leaf.descriptor, key.name, &status, AT_SYMLINK_NOFOLLOW) == 0
        else {
            return 0
        }
        return UInt(status.st_ino)
    }
}
