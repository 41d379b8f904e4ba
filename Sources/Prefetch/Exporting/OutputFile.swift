internal import CLinux
internal import Glibc
internal import WebImage

/// A file of results that takes its name only when it is complete: until ``commit()`` what had the name stays as it was. What is no
/// regular file (a pipe, /dev/null) is written to as it is.
package final class OutputFile: Sendable {
    private enum Target: Sendable {
        case file(TemporaryFile, name: String)
        case special(Int32)
    }

    /// As it was named.
    package let path: String
    private let target: Target

    /// Makes what will become the file, in its folder.
    /// - Throws: `cacheUnavailable` (73) where that cannot be, with the reason.
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
        // Behind a symbolic link, not in place of it.
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

    /// Looks whether a file can be written under a path, and leaves nothing behind.
    /// - Throws: as ``init(path:)``.
    package static func check(_ path: String) throws(PrefetchError) {
        var status = stat()
        // Opening a pipe would wait for its reader, and closing it again would be the end of the output.
        if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFIFO {
            guard access(path, W_OK) == 0 else { throw refused(path, errno) }
            return
        }
        _ = try OutputFile(path: path)
    }

    /// Adds bytes.
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
        // Or a power cut could leave an empty file where a complete one was.
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
