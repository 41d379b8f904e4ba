internal import CLinux
internal import Glibc

/// A written file without its final name: unnamed, or with a temporary name beside it. The owner closes it and removes the temporary name.
package struct NewFile: Sendable {
    package let descriptor: Int32
    /// Nil if it is unnamed.
    package let temporaryName: String?
    private let folder: Int32

    /// Both descriptors must stay open while this value is used.
    package init(_ descriptor: Int32, temporaryName: String?, in folder: Int32) {
        (self.descriptor, self.temporaryName, self.folder) = (descriptor, temporaryName, folder)
    }

    /// Creates one in an open folder, for reading and writing; nil with `errno`.
    /// * `isUnnamed`: whether to try an unnamed file first; falls back to a temporary name if that is not supported.
    package static func make(
        in folder: Int32, mode: UInt32, isUnnamed: Bool, temporaryName: @autoclosure () -> String
    ) -> NewFile? {
        if isUnnamed {
            let file = clinux_open_beneath(folder, ".", clinux_tmpfile_flags(), mode)
            if file >= 0 { return NewFile(file, temporaryName: nil, in: folder) }
            guard FileSystemFeatures.isWithoutUnnamedFiles(errno) else { return nil }
        }
        let name = temporaryName()
        let file = clinux_open_beneath(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        return file < 0 ? nil : NewFile(file, temporaryName: name, in: folder)
    }

    /// Gives it a free name, which makes it visible atomically. A temporary name is replaced by the means that the file system supports: a
    /// hard link (the temporary name remains), a rename without replacing, or, without both (NFS lacks that rename, vfat and some FUSE file
    /// systems lack hard links), a check and a rename with the folder locked.
    /// * `isLocked`: whether the caller has already locked the folder.
    /// - Returns: 0 or an errno; `EEXIST` if the name is taken.
    package func publish(as name: UnsafePointer<CChar>, isLocked: Bool = false) -> Int32 {
        guard let temporaryName else { return clinux_link_fd(descriptor, folder, name) == 0 ? 0 : errno }
        if linkat(folder, temporaryName, folder, name, 0) == 0 { return 0 }
        guard [EPERM, EOPNOTSUPP, ENOSYS].contains(errno) else { return errno }
        if clinux_rename_noreplace(folder, temporaryName, folder, name) == 0 { return 0 }
        guard [EINVAL, ENOSYS, EOPNOTSUPP].contains(errno) else { return errno }
        let lock = isLocked ? nil : FolderLock(folder)
        guard isLocked || lock != nil else { return errno }
        var status = stat()
        var code = fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? EEXIST : errno
        if code == ENOENT { code = renameat(folder, temporaryName, folder, name) == 0 ? 0 : errno }
        _ = consume lock
        return code
    }

    /// Gives it a name, replacing an existing file.
    /// * `step`: a temporary name for an unnamed file.
    /// - Returns: 0 or an errno.
    package func publish(replacing name: String, by step: @autoclosure () -> String) -> Int32 {
        if let temporaryName { return renameat(folder, temporaryName, folder, name) == 0 ? 0 : errno }
        let step = step()
        guard clinux_link_fd(descriptor, folder, step) == 0 else { return errno }
        if renameat(folder, step, folder, name) == 0 { return 0 }
        let code = errno
        unlinkat(folder, step, 0)
        return code
    }
}
