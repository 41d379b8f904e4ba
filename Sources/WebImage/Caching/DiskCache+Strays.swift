internal import CLinux
internal import Glibc

extension DiskCache {
    /// Names what stands below `v1` and is none of the cache's: files of other names, and symbolic links in the place of its
    /// directories, which are not followed. Of no use and of no harm to the cache.
    ///
    /// * `movesAside`: whether they are moved into `bad/` too.
    /// * `visit`: hears of each path below the cache directory, and whether it was moved.
    /// - Throws: `localFault`; `cancelled` where the task is cancelled.
    package func strays(
        movesAside: Bool = false, _ visit: (_ path: String, _ isMoved: Bool) -> Void
    ) throws(WebImageError) {
        try strays(in: "v1", depth: 0, movesAside, visit)
    }

    private func strays(
        in path: String, depth: Int, _ movesAside: Bool, _ visit: (String, Bool) -> Void
    ) throws(WebImageError) {
        guard !Task.isCancelled else { throw WebImageError(.cancelled, "the check of the cache was cancelled") }
        guard let parent = directory(path) else { return }
        for name in try names(in: path, length: nil) where name != "." && name != ".." {
            var status = stat()
            guard fstatat(parent.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
            if depth < 2 {
                if name.utf8.count == 1, Self.isHex(name.utf8.first ?? 0), status.st_mode & S_IFMT == S_IFDIR {
                    try strays(in: "\(path)/\(name)", depth: depth + 1, movesAside, visit)
                    continue
                }
            } else if Self.isOurs(name) {
                continue
            }
            visit("\(path)/\(name)", movesAside && moveStrayAside(name, of: parent.descriptor))
        }
    }

    private func moveStrayAside(_ name: String, of parent: Int32) -> Bool {
        guard !configuration.isReadOnly, let bad = openBad() else { return false }
        return renameat(parent, name, bad.descriptor, Self.strayName()) == 0
    }

    /// Of an image, a record, or a temporary file.
    private static func isOurs(_ name: String) -> Bool {
        if name.hasPrefix(".t-") { return true }
        let stem = name.hasSuffix(sidecarSuffix) ? name.utf8.dropLast(sidecarSuffix.utf8.count) : name.utf8[...]
        return stem.count == 62 && stem.allSatisfy(isHex)
    }
}
