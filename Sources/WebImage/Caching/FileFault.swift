internal import Glibc

extension WebImageError {
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
        return WebImageError(.localFault, "cannot \(doing): \(reason)", underlyingCode: code)
    }
}
