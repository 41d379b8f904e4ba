internal import CLinux
internal import Glibc
internal import Prefetch
internal import WebImage

/// Checks whether images can be stored in a cache folder, and stay.
struct CacheDiagnostics: Sendable {
    let folder: String

    /// File system types of statfs(2), from linux/magic.h, with consequences for a cache.
    private static let volatileTypes: [Int: String] = [0x0102_1994: "tmpfs", 0x8584_58f6: "ramfs"]
    private static let networkTypes: [Int: String] = [
        0x6969: "NFS", 0xff53_4d42: "CIFS", 0xfe53_4d42: "SMB", 0x517b: "SMB", 0x6573_5546: "FUSE",
    ]

    func findings() -> [Finding] {
        var status = stat()
        guard stat(folder, &status) == 0 else {
            let parent = Self.nearest(folder)
            return access(parent, W_OK | X_OK) == 0
                ? [Finding(.ok, "cache", "\(folder) is not there yet, and can be made")] + room(parent)
                : [
                    Finding(
                        .fail, "cache", "\(folder) is not there, and cannot be made in \(parent)",
                        remedy: "choose a folder that this user may write: --cache DIR")
                ]
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            return [Finding(.fail, "cache", "\(folder) is not a folder", remedy: "choose another: --cache DIR")]
        }
        return [writing()] + openness(status) + durability() + room(folder)
    }

    /// Writes a file as images are written, with an attribute, and leaves nothing behind.
    private func writing() -> Finding {
        let file = clinux_open(folder, O_RDWR | clinux_tmpfile_flags() | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            guard [EOPNOTSUPP, EISDIR, EINVAL].contains(errno) else {
                return Finding(
                    .fail, "cache", "\(folder) cannot be written: \(String(cString: strerror(errno)))",
                    remedy: "give it to this user, make room, or choose another: --cache DIR")
            }
            guard access(folder, W_OK | X_OK) == 0 else {
                return Finding(
                    .fail, "cache", "\(folder) cannot be written: \(String(cString: strerror(errno)))",
                    remedy: "give it to this user, or choose another: --cache DIR")
            }
            return Finding(
                .warn, "cache",
                "\(folder): its file system has no unnamed files; a kill may leave temporary ones, which cache gc removes"
            )
        }
        defer { close(file) }
        let bytes = [UInt8](repeating: 7, count: 4_096)
        guard write(file, bytes, bytes.count) == bytes.count, fsync(file) == 0 else {
            return Finding(
                .fail, "cache", "\(folder) takes no files: \(String(cString: strerror(errno)))",
                remedy: "make room, or choose another: --cache DIR")
        }
        guard fsetxattr(file, "user.prefetch", bytes, 64, 0) == 0 else {
            return Finding(
                .warn, "cache", "\(folder): its file system has no attributes; each image gets a second small file")
        }
        return Finding(.ok, "cache", "\(folder) can be written")
    }

    private func openness(_ status: stat) -> [Finding] {
        guard status.st_mode & 0o002 != 0 else { return [] }
        return [
            Finding(
                .warn, "cache",
                "everybody on this machine can write to it; what other users put there is verified at each hit",
                remedy: "chmod o-w \(Shell.quoted(folder))")
        ]
    }

    private func durability() -> [Finding] {
        let directory = clinux_open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard directory >= 0 else { return [] }
        defer { close(directory) }
        let type = Int(clinux_fs_magic(directory)) & 0xffff_ffff
        if let name = Self.volatileTypes[type] {
            return [
                Finding(
                    .warn, "durability", "the cache is on \(name): it is empty after the next start of the machine",
                    remedy: "choose a folder on a disk, unless that is what you want")
            ]
        }
        if let name = Self.networkTypes[type] {
            return [
                Finding(
                    .warn, "durability",
                    "the cache is on \(name): locks between machines work only if it supports them",
                    remedy: "a cache for each machine is faster; or see that locks work on this mount")
            ]
        }
        return [Finding(.ok, "durability", "on a disk: what was counted survives a power cut")]
    }

    private func room(_ path: String) -> [Finding] {
        var system = statvfs()
        guard statvfs(path, &system) == 0 else { return [] }
        let free = Int(clamped: Double(system.f_bavail) * Double(system.f_frsize))
        // Some file systems have no inode limit, and report 0.
        let inodes = system.f_files > 0 ? Int(clamping: system.f_favail) : Int.max
        let text =
            "\(Wording.bytes(free)) free" + (inodes == .max ? "" : ", room for \(Wording.count(inodes)) more files")
        if free < 64 << 20 || inodes < 1_000 {
            return [
                Finding(
                    .fail, "disk", "full: \(text)",
                    remedy: "make room, or keep less: prefetch-coord cache gc --max-size")
            ]
        }
        return [
            free < 2 << 30 || inodes < 100_000
                ? Finding(.warn, "disk", text, remedy: "workers pause where it is full; cache gc --max-size makes room")
                : Finding(.ok, "disk", text)
        ]
    }

    private static func nearest(_ path: String) -> String {
        var parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        while parts.count > 1 {
            parts.removeLast()
            let parent = parts == [""] ? "/" : parts.joined(separator: "/")
            if access(parent, F_OK) == 0 { return parent }
        }
        return "."
    }
}
