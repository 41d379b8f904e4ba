internal import Glibc

/// Whose records a cache believes: of everybody who may write to its directory; where any user may, those of this user, root and the owner.
struct CacheTrust: Sendable {
    /// Whether any user may write to it.
    let isWorldWritable: Bool
    private let owner: uid_t

    init(of directory: CacheDirectory) throws(WebImageError) {
        var status = stat()
        guard fstat(directory.descriptor, &status) == 0 else {
            throw .fileFault("open the cache directory \(directory.path)")
        }
        (isWorldWritable, owner) = (status.st_mode & 0o002 != 0, status.st_uid)
    }

    /// * `user`: the owner of a file.
    func covers(_ user: uid_t) -> Bool { !isWorldWritable || user == 0 || user == owner || user == geteuid() }
}
