internal import CLinux
internal import Glibc

/// A folder that is held open. Its entries are reached by a single name from there and never through a symbolic link, so a user who can
/// rename a parent folder cannot substitute another.
final class PinnedFolder: Sendable {
    /// Its path when it was opened; for messages, and for other programs.
    let path: String
    let descriptor: Int32

    private init(path: String, descriptor: Int32) {
        self.path = path
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Opens a folder named by the user; the path may have symbolic links.
    convenience init(path: String) throws(PrefetchError) {
        let descriptor = clinux_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw .file("open", path) }
        self.init(path: path, descriptor: descriptor)
    }

    /// A folder in this one.
    /// - Returns: nil if there is none of this name.
    func folder(_ name: String) throws(PrefetchError) -> PinnedFolder? {
        let inside = clinux_open_beneath(descriptor, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard inside >= 0 else {
            if errno == ENOENT { return nil }
            throw .file("open", "\(path)/\(name)")
        }
        return PinnedFolder(path: "\(path)/\(name)", descriptor: inside)
    }

    /// Creates a folder in this one unless the name exists.
    /// - Returns: whether it was created.
    @discardableResult func make(_ name: String, mode: mode_t) throws(PrefetchError) -> Bool {
        if mkdirat(descriptor, name, mode) == 0 { return true }
        guard errno == EEXIST else { throw .file("make", "\(path)/\(name)") }
        return false
    }

    var status: stat {
        var status = stat()
        fstat(descriptor, &status)
        return status
    }

    /// Opens a file that belongs to this user and that no other user can write.
    /// - Returns: a descriptor for the caller to close; -1 if there is no such file and `flags` do not create one.
    /// - Throws: `cacheUnavailable`; also for a link, a FIFO, or a file of another user.
    func open(_ name: String, _ flags: Int32) throws(PrefetchError) -> Int32 {
        // O_NONBLOCK: opening a FIFO would wait for its other end.
        let file = clinux_open_beneath(descriptor, name, flags | O_CLOEXEC | O_NONBLOCK, 0o600)
        guard file >= 0 else {
            if errno == ENOENT && flags & O_CREAT == 0 { return -1 }
            throw .file("open", "\(path)/\(name)")
        }
        var status = stat()
        fstat(file, &status)
        if let fault = Self.fault(of: status) {
            close(file)
            throw .notOurs("\(path)/\(name)", fault)
        }
        return file
    }

    /// Up to 64 KiB of a small file from an offset on; empty if it cannot be read.
    func read(_ name: String, from offset: Int = 0) -> [UInt8] {
        guard let file = try? open(name, O_RDONLY), file >= 0 else { return [] }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = pread(file, &bytes, bytes.count, off_t(offset))
        return Array(bytes.prefix(max(0, count)))
    }

    /// Replaces a file atomically.
    /// * `mode`: its permissions.
    /// * `isSynced`: whether it survives a power cut once this returns.
    func write(
        _ text: String, to name: String, mode: mode_t = 0o600, isSynced: Bool = false
    ) throws(PrefetchError) {
        let temporary = "\(name).\(String(UInt64.random(in: 0 ... .max), radix: 36))"
        let file = try open(temporary, O_WRONLY | O_CREAT | O_EXCL)
        defer { close(file) }
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            guard count > 0 || errno == EINTR else {
                let error = PrefetchError.file("write", "\(path)/\(name)")
                unlinkat(descriptor, temporary, 0)
                throw error
            }
            rest = rest.dropFirst(max(0, count))
        }
        guard fchmod(file, mode) == 0, !isSynced || fsync(file) == 0,
            renameat(descriptor, temporary, descriptor, name) == 0,
            !isSynced || fsync(descriptor) == 0
        else { throw .file("write", "\(path)/\(name)") }
    }

    func names() throws(PrefetchError) -> [String] {
        // A second descriptor has its own position; closedir(3) closes it.
        let own = clinux_open_beneath(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard own >= 0, let stream = fdopendir(own) else {
            if own >= 0 { close(own) }
            throw .file("list", path)
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    /// Refuses a folder that another user may have tampered with: it, and every file in it, must belong to this user, be writable by this
    /// user only, and have no other hard link.
    /// * `folders`: names of subfolders that are checked too; any other one is refused.
    /// - Throws: `cacheUnavailable` with the fault and the file.
    func inspect(folders: Set<String> = []) throws(PrefetchError) {
        if let fault = Self.fault(of: status, isFolder: true) { throw .notOurs(path, fault) }
        for name in try names() {
            if folders.contains(name), let folder = try self.folder(name) {
                try folder.inspect()
                continue
            }
            var status = stat()
            guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
                // A file of a running server, which is gone by now.
                if errno == ENOENT { continue }
                throw .file("look at", "\(path)/\(name)")
            }
            if status.st_mode & S_IFMT == S_IFSOCK { continue }
            if let fault = Self.fault(of: status) { throw .notOurs("\(path)/\(name)", fault) }
        }
    }

    /// Why a file or folder is not private to this user; nil if it is.
    static func fault(of status: stat, isFolder: Bool = false) -> String? {
        switch status.st_mode & S_IFMT {
        case S_IFREG where !isFolder, S_IFDIR where isFolder: break
        case S_IFLNK: return "is a symbolic link"
        default: return isFolder ? "is not a folder" : "is not a regular file"
        }
        if status.st_uid != geteuid() { return "belongs to user ID \(status.st_uid), and this is \(geteuid())" }
        if status.st_mode & 0o022 != 0 { return "can be written by others" }
        if !isFolder && status.st_nlink != 1 { return "has \(status.st_nlink) names (hard links)" }
        return nil
    }
}

extension PrefetchError {
    static func notOurs(_ path: String, _ fault: String) -> PrefetchError {
        PrefetchError(
            .cacheUnavailable, "\(path) \(fault), so it is not used",
            hint: fault.hasPrefix("belongs")
                ? "run the command as that user, or name another folder for the state of runs: --state DIR"
                : fault.hasPrefix("can be written")
                    ? "if nobody else has written there: chmod go-w '\(path)'"
                    : "remove it, or name another folder for the state of runs: --state DIR")
    }
}
