internal import CLinux
internal import Glibc
internal import WebImage

/// An output file that gets its name only when it is complete: an existing file of that name stays until ``commit()``. Anything but a
/// regular file (a pipe, /dev/null) is written to directly.
package final class OutputFile: Sendable {
    private enum Target: Sendable {
        case file(TemporaryFile, name: String)
        case special(Int32)
    }

    package let path: String
    private let target: Target

    /// Creates the temporary file in the target's folder.
    /// - Throws: `cacheUnavailable` (73) with the reason.
    package init(path: String) throws(PrefetchError) {
        self.path = path
        var status = stat()
        let exists = stat(path, &status) == 0
        if exists, status.st_mode & S_IFMT == S_IFDIR { throw Self.refused(path, EISDIR) }
        if exists, status.st_mode & S_IFMT != S_IFREG {
            let file = clinux_open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY, 0)
            guard file >= 0 else { throw Self.refused(path, errno) }
            target = .special(file)
            return
        }
        // The target of a symbolic link, not the link.
        let resolved = exists ? Self.resolved(path) : path
        let parts = resolved.split(separator: "/", omittingEmptySubsequences: false)
        let name = String(parts.last ?? "")
        guard !name.isEmpty else { throw Self.refused(path, EISDIR) }
        let parent = parts.count == 1 ? "." : parts.dropLast().joined(separator: "/") + "/"
        guard let folder = OpenFolder(parent), let file = TemporaryFile(in: folder) else {
            throw Self.refused(path, errno)
        }
        if exists { fchmod(file.descriptor, status.st_mode & 0o777) }
        target = .file(file, name: name)
    }

    deinit {
        if case .special(let file) = target { close(file) }
    }

    /// Checks whether a path can be written, and leaves nothing behind.
    package static func check(_ path: String) throws(PrefetchError) {
        var status = stat()
        // Opening a pipe would wait for its reader, and closing it would end the output.
        if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFIFO {
            guard access(path, W_OK) == 0 else { throw refused(path, errno) }
            return
        }
        _ = try OutputFile(path: path)
    }

    /// - Throws: `inputOutput` (74).
    package func write(_ bytes: [UInt8]) throws(PrefetchError) {
        let descriptor =
            switch target {
            case .file(let file, _): file.descriptor
            case .special(let descriptor): descriptor
            }
        let code = OpenFile.write(bytes, to: descriptor)
        guard code == 0 else { throw Self.failed(path, code) }
    }

    /// Gives the complete file its name.
    /// - Throws: `inputOutput` (74).
    package func commit() throws(PrefetchError) {
        guard case .file(let file, let name) = target else { return }
        // Otherwise a power cut could replace a complete file by an empty one.
        guard fsync(file.descriptor) == 0 else { throw Self.failed(path, errno) }
        let code = file.publish(replacing: name)
        guard code == 0 else { throw Self.failed(path, code) }
    }

    private static func resolved(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private static func refused(_ path: String, _ code: Int32) -> PrefetchError {
        PrefetchError(
            .cacheUnavailable, "cannot write \(path): \(String(cString: strerror(code)))",
            hint: "name a file in a folder that is there and that this user may write to")
    }

    private static func failed(_ path: String, _ code: Int32) -> PrefetchError {
        PrefetchError(
            .inputOutput, "cannot write \(path): \(String(cString: strerror(code)))",
            hint: "make room, and write it again")
    }
}
