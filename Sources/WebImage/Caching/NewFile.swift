internal import CLinux
internal import Glibc

/// A file that is written and has no final name yet: none at all, or a temporary one in the folder where it gets its own. Whoever has it
/// closes it, and removes the temporary name.
package struct NewFile: Sendable {
    /// Of the file.
    package let descriptor: Int32
    /// Nil where it has no name.
    package let temporaryName: String?
    private let folder: Int32

    /// A file for a folder, both open as long as this value is used.
    package init(_ descriptor: Int32, temporaryName: String?, in folder: Int32) {
        (self.descriptor, self.temporaryName, self.folder) = (descriptor, temporaryName, folder)
    }

    /// Makes one in an open folder, for reading and writing; nil with `errno`.
    ///
    /// * `isUnnamed`: whether to try without a name; it has a temporary one where the file system knows only files with names.
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

    /// Gives it a name that is free: the one step that makes it visible. A temporary name is given up for it in whatever way the file
    /// system has: a second name (the first one stays), a rename that replaces nothing, or, where it has neither (NFS has no such rename, vfat
    /// and some of FUSE no second names), a look and a rename with the folder locked.
    ///
    /// * `isLocked`: whether the caller has locked the folder already.
    /// - Returns: 0 or an errno, `EEXIST` where the name is taken.
    package func publish(as name: String, isLocked: Bool = false) -> Int32 {
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

    /// Gives it a name in place of what has it.
    ///
    /// * `step`: a temporary name that an unnamed file has in between.
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
