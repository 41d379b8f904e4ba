internal import Glibc
internal import WebImage

/// `redis` of a run's state, held open: append-only file, log, lock and socket of the private server. Private to this user (0700).
struct PrivateRedisFolder: Sendable {
    static let name = "redis"
    static let lockName = "server.lock"
    static let recordName = "redis.json"
    static let logName = "redis.log"
    private static let socketName = "redis.sock"
    /// Has the folder of the socket, if that is neither this one nor the usual one.
    private static let placeName = "socket-folder"
    /// The longest socket path that is used directly: unix(7) allows 107 bytes.
    private static let maxSocketPath = 100

    /// The cache folder: absolute, without symbolic links.
    let cache: String
    let data: PinnedFolder
    let socket: String
    /// The socket's path for the server, whose working directory is ``data``.
    let boundSocket: String

    var lock: String { "\(data.path)/\(Self.lockName)" }
    var log: String { "\(data.path)/\(Self.logName)" }
    var manifest: String { "\(data.path)/appendonlydir/appendonly.aof.manifest" }

    /// Bytes of the append-only file; 0 without one.
    var dataSize: Int {
        let path = "\(data.path)/appendonlydir"
        guard let folder = opendir(path) else { return 0 }
        defer { closedir(folder) }
        var sum = 0
        while let entry = readdir(folder) {
            var status = stat()
            if fstatat(dirfd(folder), &entry.pointee.d_name.0, &status, AT_SYMLINK_NOFOLLOW) == 0 {
                sum += Int(status.st_size)
            }
        }
        return sum
    }

    init(cache: String, data: PinnedFolder) throws(PrefetchError) {
        self.cache = cache
        self.data = data
        let near = "\(data.path)/\(Self.socketName)"
        // Clients connect by path: no other user may be able to replace a folder on the way.
        let isNear = near.utf8.count <= Self.maxSocketPath && Self.isPrivate(data.path)
        socket = isNear ? near : try Self.shortSocket(for: data)
        boundSocket = isNear ? Self.socketName : socket
    }

    /// Written by the process that started the server.
    var record: ServerRecord? { ServerRecord(json: data.read(Self.recordName)) }

    /// Whether only a server of this user can listen at the path: in this very folder, whatever its path was where the server was started
    /// (in another container), or beside the other short sockets.
    func isOurs(socket other: String) -> Bool {
        guard other.hasPrefix("/"), other.utf8.count <= Self.maxSocketPath, let slash = other.lastIndex(of: "/") else {
            return false
        }
        let parent = String(other[..<slash])
        if parent.hasPrefix(Self.shortFolder()) { return Self.isPrivate(parent) }
        var status = stat()
        let own = data.status
        return lstat(parent, &status) == 0 && status.st_ino == own.st_ino && status.st_dev == own.st_dev
            && Self.isPrivate(parent)
    }

    /// Whether only this user and root can rename folders on the way.
    private static func isPrivate(_ path: String) -> Bool {
        var prefix = ""
        for component in [""] + path.split(separator: "/").map(String.init) {
            prefix += component.isEmpty ? "" : "/\(component)"
            var status = stat()
            guard lstat(prefix.isEmpty ? "/" : prefix, &status) == 0, status.st_mode & S_IFMT == S_IFDIR,
                status.st_uid == 0 || status.st_uid == geteuid(),
                // In a folder with the sticky bit (01000) only the owner of an entry can rename it.
                status.st_mode & 0o022 == 0 || status.st_mode & 0o1000 != 0
            else { return false }
        }
        return true
    }

    private static func shortFolder(in base: String = "/tmp") -> String { "\(base)/prefetch-\(geteuid())" }

    private static func isOfThisUserAlone(_ folder: String) -> Bool {
        var status = stat()
        return lstat(folder, &status) == 0 && status.st_mode & (S_IFMT | 0o077) == S_IFDIR
            && status.st_uid == geteuid()
    }

    /// Derived from the path of the folder alone, so that later owners listen at the same path. Any user may make a folder of the usual name in
    /// /tmp: then it is one with a name of its own, which the state remembers.
    /// - Throws: `cacheUnavailable`.
    static func shortSocket(for data: PinnedFolder, in base: String = "/tmp") throws(PrefetchError) -> String {
        let usual = shortFolder(in: base), known = String(decoding: data.read(placeName), as: UTF8.self)
        var folder = known.hasPrefix(usual) && isOfThisUserAlone(known) ? known : usual
        if !isOfThisUserAlone(folder), mkdir(folder, 0o700) != 0 {
            guard errno == EEXIST else { throw .file("make", folder) }
            var template = Array("\(usual)-XXXXXX".utf8CString)
            guard mkdtemp(&template) != nil else { throw .file("make", usual) }
            folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
            try data.write(folder, to: placeName)
        }
        let hasher = SHA256Hasher()
        data.path.utf8.withContiguousStorageIfAvailable { hasher.update(UnsafeRawBufferPointer($0)) }
        return "\(folder)/\(hasher.finishedHex().prefix(16)).sock"
    }
}
