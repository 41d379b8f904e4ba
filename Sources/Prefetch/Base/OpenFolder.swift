internal import CLinux
internal import Glibc

final class OpenFolder: Sendable {
    let descriptor: Int32

    /// Nil with `errno`.
    init?(_ path: String) {
        descriptor = clinux_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        if descriptor < 0 { return nil }
    }

    /// Opens a folder in another one, creating it if needed; nil with `errno`. Does not follow a symbolic link.
    init?(_ name: String, in folder: OpenFolder) {
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
        var file = clinux_open_beneath(folder.descriptor, name, flags, 0)
        if file < 0, errno == ENOENT, mkdirat(folder.descriptor, name, 0o777) == 0 || errno == EEXIST {
            file = clinux_open_beneath(folder.descriptor, name, flags, 0)
        }
        descriptor = file
        if descriptor < 0 { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// The beginning of a file; nil if there is none.
    func bytes(of name: String, most: Int) -> [UInt8]? {
        guard let file = file(name) else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: most)
        var count = 0
        while count < most,
            case let got = bytes.withUnsafeMutableBytes({
                pread(file, $0.baseAddress! + count, most - count, off_t(count))
            }), got > 0
        {
            count += got
        }
        return Array(bytes.prefix(count))
    }

    /// Opens a file for reading, and for the caller to close; nil with `errno`.
    func file(_ name: String) -> Int32? {
        let file = clinux_open_beneath(descriptor, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0)
        return file < 0 ? nil : file
    }

    /// The names in it; none if it cannot be read.
    func names() -> [String] {
        let own = clinux_open_beneath(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard own >= 0, let stream = fdopendir(own) else {
            if own >= 0 { close(own) }
            return []
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            names.append(
                withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
        }
        return names
    }

    /// Bytes of what has a name; nil if nothing has it.
    func size(of name: String) -> Int? {
        var status = stat()
        return fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? Int(status.st_size) : nil
    }
}
