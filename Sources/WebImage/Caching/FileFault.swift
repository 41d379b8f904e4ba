internal import Glibc

extension WebImageError {
    /// What a bad sector, a damaged directory, an obstacle or a permission says of one name. A want of room, of descriptors or of memory, and
    /// a file system that is read-only or gone, concern every name.
    private static let ofOneFile: Set<Int32> = [
        EIO, EBADMSG, EUCLEAN, ESTALE, EACCES, EPERM, EEXIST, EISDIR, ENOTDIR, ENOTEMPTY, ELOOP, EXDEV, EINVAL, ENODATA,
        EBUSY, ETXTBSY,
    ]

    /// `localFault` for a file call, with a sentence that says what failed and why.
    /// * `doing`: the failed action and its object.
    static func fileFault(_ doing: String, code: Int32 = errno) -> WebImageError {
        let reason =
            switch code {
            case ENOSPC: "the disk is full, or has no inodes left"
            case EDQUOT: "the disk quota is used up"
            case EROFS: "the file system is mounted read-only"
            case EACCES, EPERM: "this user may not (\(errnoText(code)))"
            case EMFILE, ENFILE: "no file descriptors are left"
            case ELOOP, EXDEV:
                "a symbolic link or a mount point stands where only directories and files of the cache may be"
            default: errnoText(code)
            }
        var error = WebImageError(.localFault, "cannot \(doing): \(reason)", underlyingCode: code)
        error.isOfOneFile = ofOneFile.contains(code)
        return error
    }
}
