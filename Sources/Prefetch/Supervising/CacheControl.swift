internal import Glibc

/// `.prefetch` of a cache, held open.
struct CacheControl: Sendable {
    /// Absolute, without symbolic links: every name of a cache leads to the same server.
    let cache: String
    /// `.prefetch` itself, never a symbolic link. In a group's cache other users may write there.
    let folder: PinnedFolder

    /// Creates the two folders if missing; touches nothing else of the cache.
    init(cache: String) throws(PrefetchError) {
        try Self.makeFolders(cache)
        guard let resolved = realpath(cache, nil) else { throw .file("resolve", cache) }
        self.cache = String(cString: resolved)
        free(resolved)
        let root = try PinnedFolder(path: self.cache)
        try root.make(".prefetch", mode: 0o777)
        guard let folder = try root.folder(".prefetch") else { throw .file("open", self.cache + "/.prefetch") }
        self.folder = folder
    }

    private static func makeFolders(_ path: String) throws(PrefetchError) {
        if path.isEmpty || mkdir(path, 0o777) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/") else { throw .file("make", path) }
        try makeFolders(String(path[..<slash]))
        guard mkdir(path, 0o777) == 0 || errno == EEXIST else { throw .file("make", path) }
    }
}
