internal import CLinux
internal import Glibc

extension DiskCache {
    private static let tagPath = "CACHEDIR.TAG"

    /// Makes what belongs into a cache, where it is missing.
    /// - Returns: whether what stood in the place of the directory of all images was moved aside.
    /// - Throws: `localFault`; also where a symbolic link stands in the place of the cache's own folder.
    func lay() throws(WebImageError) -> Bool {
        for name in ["v1", ".prefetch", ".prefetch/locks"] {
            guard makeFolder(name) == 0 || errno == EEXIST else { throw fault("make \(name)") }
        }
        let isObstructed = directory("v1") == nil && Self.isObstacle(errno) && moveObstacleAside("v1", of: root)
        if isObstructed {
            guard makeFolder("v1") == 0 || errno == EEXIST else { throw fault("make v1") }
        }
        makeID()
        // https://bford.info/cachedir/: backup programs leave a directory with this file out.
        let text = "Signature: 8a477f597d28d172789f06886806bc55\n# This directory is a cache of prefetch.\n"
        let code = makeOnce(Self.tagPath, text, mode: 0o666)
        guard code == 0 else { throw fault("make \(Self.tagPath)", code: code) }
        return isObstructed
    }

    /// Makes the id where there is none; a full disk is no reason not to open a cache.
    private func makeID() {
        var words = SystemRandomNumberGenerator()
        let digits = Digest.hex((0..<16).map { _ in words.next() as UInt8 })
        _ = makeOnce(Self.idPath, "\(digits)\n", mode: 0o444)
    }

    private func makeOnce(_ path: String, _ text: String, mode: mode_t) -> Int32 {
        var status = stat()
        if fstatat(root, path, &status, AT_SYMLINK_NOFOLLOW) == 0 { return 0 }
        return Array(text.utf8).withUnsafeBytes {
            Self.makeOnce(path, in: root, $0, mode: mode, isUnnamed: current.unnamedFiles, isSynced: true)
        }
    }

    /// Makes a small file unless there is one of its name: whoever is first makes it, and a kill leaves the whole file or none.
    ///
    /// * `isUnnamed`: whether it may be without a name until it is whole; otherwise, and where the file system cannot do that, a kill may leave
    ///   a temporary name.
    /// - Returns: 0 or an errno.
    static func makeOnce(
        _ path: String, in root: Int32, _ bytes: UnsafeRawBufferPointer, mode: mode_t, isUnnamed: Bool, isSynced: Bool
    ) -> Int32 {
        func fill(_ file: borrowing OpenFile) -> Int32 {
            let code = OpenFile.write(bytes, to: file.descriptor)
            return code == 0 && isSynced && fsync(file.descriptor) != 0 ? errno : code
        }
        if isUnnamed, let file = OpenFile(clinux_open_beneath(root, ".prefetch", clinux_tmpfile_flags(), mode)) {
            let code = fill(file)
            guard code == 0 else { return code }
            if beneath(root, path, { clinux_link_fd(file.descriptor, $0, $1) }) == 0 || errno == EEXIST { return 0 }
        }
        let temporary = ".prefetch/\(temporaryName())"
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
        guard let file = OpenFile(clinux_open_beneath(root, temporary, flags, mode)) else { return errno }
        var code = fill(file)
        if code == 0, nameOnce(temporary, as: path, in: root) != 0, errno != EEXIST { code = errno }
        _ = beneath(root, temporary) { unlinkat($0, $1, 0) }
        return code
    }
}
