internal import CLinux
internal import Glibc
internal import Threading
package import WebImage

/// A folder that gets images out of the cache under names of their own: as hard links, which take no room, or as copies where those
/// cannot be. A file that is there already is never overwritten.
package final class ImageFolder: Sendable {
    /// What was done.
    package struct Tally: Sendable, Equatable {
        /// New names of the cache's own files.
        package var linked = 0
        /// New copies.
        package var copied = 0
        /// Images that were there.
        package var present = 0
        /// Lines that ended without an image, or are open.
        package var without = 0
        /// Lines that ended with an image that is not in the cache any more.
        package var missing = 0
    }

    /// As it was named.
    package let path: String
    private let folder: OpenFolder
    private let state = Locked(Tally())
    private let onFirstCopy: @Sendable (_ reason: String) -> Void

    /// Opens a folder; makes it, and what is missing above it.
    ///
    /// * `onFirstCopy`: hears once why files are copied.
    /// - Throws: `cacheUnavailable` (73) where it cannot be made or written to.
    package init(
        path: String, onFirstCopy: @escaping @Sendable (_ reason: String) -> Void = { _ in }
    ) throws(PrefetchError) {
        self.path = path
        self.onFirstCopy = onFirstCopy
        guard Self.make(path), let folder = OpenFolder(path), TemporaryFile(in: folder) != nil else {
            throw Self.refused(path, errno)
        }
        self.folder = folder
    }

    /// What was done until now.
    package var tally: Tally { state.withLock { $0 } }

    /// Puts an image under a name.
    /// - Throws: `cacheUnavailable` where another file has the name, `inputOutput` (74).
    package func add(_ entry: CacheEntry, as name: String) throws(PrefetchError) {
        let code = entry.link(into: folder.descriptor, as: name)
        switch code {
        case 0: state.withLock { $0.linked += 1 }
        case EEXIST: try compare(entry, name)
        // ENOENT: no /proc, or the cache has let the file go since it was opened.
        case EXDEV, EPERM, EMLINK, EOPNOTSUPP, ENOSYS, ENOENT: try copy(entry, name, because: code)
        default: throw failed(name, code)
        }
    }

    /// Notes a line for which there is no file.
    func skip(isImage: Bool) {
        state.withLock { tally in
            if isImage { tally.missing += 1 } else { tally.without += 1 }
        }
    }

    private func copy(_ entry: CacheEntry, _ name: String, because reason: Int32) throws(PrefetchError) {
        guard let file = TemporaryFile(in: folder) else { throw failed(name, errno) }
        var code = entry.copy(to: file.descriptor)
        if code == 0 { code = file.publish(as: name) }
        if code == EEXIST { return try compare(entry, name) }
        guard code == 0 else { throw failed(name, code) }
        let isFirst = state.withLock { tally in
            tally.copied += 1
            return tally.copied == 1
        }
        guard isFirst else { return }
        onFirstCopy(
            reason == EXDEV
                ? "\(path) is on another file system than the cache"
                : "the file system refuses hard links in \(path) (\(String(cString: strerror(reason))))")
    }

    private func compare(_ entry: CacheEntry, _ name: String) throws(PrefetchError) {
        let file = clinux_open_beneath(folder.descriptor, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0)
        defer { if file >= 0 { close(file) } }
        guard file >= 0, entry.isSame(as: file) else {
            throw PrefetchError(
                .cacheUnavailable, "\(path)/\(name) is there already and is another file; it was not overwritten",
                hint: "choose an empty folder, or move that file away")
        }
        state.withLock { $0.present += 1 }
    }

    private func failed(_ name: String, _ code: Int32) -> PrefetchError {
        PrefetchError(
            .inputOutput, "cannot write \(path)/\(name): \(String(cString: strerror(code)))",
            hint: "make room, and run it again: what is there stays, the rest is added")
    }

    /// mkdir -p
    private static func make(_ path: String) -> Bool {
        if mkdir(path, 0o777) == 0 || errno == EEXIST { return true }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return false }
        return make(String(path[..<slash])) && (mkdir(path, 0o777) == 0 || errno == EEXIST)
    }

    private static func refused(_ path: String, _ code: Int32) -> PrefetchError {
        PrefetchError(
            .cacheUnavailable, "cannot put files into \(path): \(String(cString: strerror(code)))",
            hint: "name a folder that this user may write to")
    }
}
