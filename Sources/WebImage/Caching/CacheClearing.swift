internal import CLinux
internal import Glibc

struct CacheClearing {
    let directory: CacheDirectory
    let leaves: LeafDirectories
    /// Directories changed after this time (seconds since 1970) are kept: a store that has just created one is about to use it.
    private let limit = WallClock.seconds - 60

    init(directory: CacheDirectory, leaves: LeafDirectories) { (self.directory, self.leaves) = (directory, leaves) }

    /// - Returns: the number of removed images.
    /// - Throws: `localFault`; `cancelled` if the task is cancelled.
    func run() throws(WebImageError) -> Int {
        var removed = 0
        for first in try directory.names(in: "v1", length: 1) {
            guard let parent = try folder("v1/\(first)") else { continue }
            let isOld = isOld(parent.descriptor)
            for second in try directory.names(in: "v1/\(first)", length: 1) {
                guard !Task.isCancelled else { throw WebImageError(.cancelled, "clearing the cache was cancelled") }
                guard let leaf = try folder("v1/\(first)/\(second)") else { continue }
                // Checked before removing the images, which changes it.
                let isOld = self.isOld(leaf.descriptor)
                let index = Int(first + second, radix: 16) ?? 0
                removed += try removeImages(in: "v1/\(first)/\(second)", leaf.descriptor, index)
                // Fails if it is not empty: a file added meanwhile, or a temporary one.
                if isOld { unlinkat(parent.descriptor, second, AT_REMOVEDIR) }
            }
            if isOld, let images = try folder("v1") { unlinkat(images.descriptor, first, AT_REMOVEDIR) }
        }
        return removed
    }

    private func removeImages(in path: String, _ leaf: Int32, _ index: Int) throws(WebImageError) -> Int {
        var removed = 0
        guard let leaf = FolderLock(leaf) else { throw directory.fault("remove images") }
        for name in try directory.names(in: path, length: CacheKey.nameLength) {
            var status = stat()
            guard fstatat(leaf.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT == S_IFREG
            else {
                // Foreign links and FIFOs are removed too, and are not in the account.
                if unlinkat(leaf.descriptor, name, 0) == 0 { removed += 1 }
                continue
            }
            switch leaves.unlink(name, of: leaf, index: index, length: Int(status.st_size)) {
            case 0: removed += 1
            case ENOENT: break
            case let code: throw directory.fault("remove an image", code: code)
            }
        }
        return removed
    }

    private func folder(_ path: String) throws(WebImageError) -> OpenFile? {
        if let folder = directory.folder(path) { return folder }
        guard errno == ENOENT || Quarantine.isObstacle(errno) else { throw directory.fault("remove images") }
        return nil
    }

    private func isOld(_ folder: Int32) -> Bool {
        var status = stat()
        return fstat(folder, &status) == 0 && status.st_mtim.tv_sec < limit
    }
}
