internal import CLinux
internal import Glibc
internal import WebImage

/// Where the private server of a cache keeps its things.
struct PrivateRedisFolder: Sendable {
    /// The longest socket path that is used as it is: unix(7) allows 107 bytes, and redis-server adds none.
    static let maxSocketPath = 100

    /// Absolute, without symbolic links: every name of a cache leads to the same server.
    let cache: String
    /// `.prefetch` of the cache.
    let control: String
    /// Configuration, log and append-only file.
    let data: String
    /// The server's Unix socket.
    let socket: String

    var lock: String { control + "/server.lock" }
    var recordPath: String { control + "/redis.json" }
    var configuration: String { data + "/redis.conf" }
    var log: String { data + "/redis.log" }
    var manifest: String { data + "/appendonlydir/appendonly.aof.manifest" }

    /// Makes what is missing of the folders; nothing else of a cache is touched.
    init(cache: String) throws(PrefetchError) {
        try Self.makeFolders(cache)
        guard let resolved = realpath(cache, nil) else { throw .file("resolve", cache) }
        self.cache = String(cString: resolved)
        free(resolved)
        control = self.cache + "/.prefetch"
        data = control + "/redis"
        try Self.make(control, mode: 0o777)
        try Self.make(data, mode: 0o700)
        let near = control + "/redis.sock"
        socket = near.utf8.count <= Self.maxSocketPath ? near : try Self.shortSocket(for: self.cache)
    }

    /// Whether the folder has the data of a private server.
    static func exists(in cache: String) -> Bool {
        var status = stat()
        return lstat(cache + "/.prefetch/redis", &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Writes a file so that a reader sees the old one or the new one.
    func write(_ text: String, to path: String) throws(PrefetchError) {
        let temporary = "\(path).\(getpid())"
        let file = clinux_open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw .file("write", temporary) }
        defer { close(file) }
        let bytes = Array(text.utf8)
        guard Glibc.write(file, bytes, bytes.count) == bytes.count, rename(temporary, path) == 0 else {
            throw .file("write", path)
        }
    }

    /// The bytes of a small file from an offset on; empty where it cannot be read.
    static func read(_ path: String, from offset: Int = 0) -> [UInt8] {
        let file = clinux_open(path, O_RDONLY | O_CLOEXEC, 0)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = pread(file, &bytes, bytes.count, off_t(offset))
        return Array(bytes.prefix(max(0, count)))
    }

    /// Derived from the path of the cache alone, so that whoever takes the server over later listens in the same place.
    private static func shortSocket(for cache: String) throws(PrefetchError) -> String {
        let folder = "/tmp/prefetch-\(geteuid())"
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw .file("make", folder) }
        var status = stat()
        // Anybody may make a folder of this name in /tmp.
        guard lstat(folder, &status) == 0, status.st_mode & (S_IFMT | 0o077) == S_IFDIR, status.st_uid == geteuid()
        else {
            throw PrefetchError(
                .cacheUnavailable, "\(folder), for the socket of \(cache), does not belong to this user alone",
                hint: "remove it, or use a cache with a path under \(maxSocketPath - 20) bytes")
        }
        let hasher = SHA256Hasher()
        cache.utf8.withContiguousStorageIfAvailable { hasher.update(UnsafeRawBufferPointer($0)) }
        return "\(folder)/\(hasher.finishedHex().prefix(16)).sock"
    }

    private static func make(_ path: String, mode: mode_t) throws(PrefetchError) {
        guard mkdir(path, mode) == 0 || errno == EEXIST else { throw .file("make", path) }
    }

    /// mkdir -p
    private static func makeFolders(_ path: String) throws(PrefetchError) {
        if path.isEmpty || mkdir(path, 0o777) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/") else { throw .file("make", path) }
        try makeFolders(String(path[..<slash]))
        try make(path, mode: 0o777)
    }
}
