internal import CLinux
internal import Glibc
internal import Threading
package import WebImage

/// A folder that receives images of the cache under other names: as hard links, which take no space, or as copies if links are impossible
/// or unwanted. Existing files are never overwritten.
package final class ImageFolder: Sendable {
    package struct Tally: Sendable, Equatable {
        package var linked = 0
        package var copied = 0
        package var present = 0
        /// Lines that ended without an image, or are open.
        package var without = 0
        /// Images whose name is not a valid file name.
        package var unnamable = 0
    }

    package enum Manner: Sendable {
        case links
        /// Separate files with the current date.
        case copies
    }

    package let path: String
    private let folder: OpenFolder
    private let copyMode: Manner
    /// The subfolder used last: neighbours of a list mostly share one.
    private let recent = Locked<(path: String, folder: OpenFolder)?>(nil)
    private let state = Locked(Tally())
    private let onFirstCopy: @Sendable (_ reason: String) -> Void

    /// Opens a folder, and creates it with its parents.
    /// * `onFirstCopy`: called once with the reason why files are copied.
    /// - Throws: `cacheUnavailable` (73) if it cannot be created or written to.
    package init(
        path: String, copyMode: Manner = .links, onFirstCopy: @escaping @Sendable (_ reason: String) -> Void = { _ in }
    ) throws(PrefetchError) {
        self.path = path
        self.copyMode = copyMode
        self.onFirstCopy = onFirstCopy
        guard Self.make(path), let folder = OpenFolder(path), TemporaryFile(in: folder) != nil else {
            throw Self.refused(path, errno)
        }
        self.folder = folder
    }

    package var tally: Tally { state.withLock { $0 } }

    /// Adds an image under a name, creating the folders in it.
    /// - Throws: `cacheUnavailable` if another file has the name, `inputOutput` (74).
    package func add(_ entry: CacheEntry, as name: String) throws(PrefetchError) {
        let parts = name.split(separator: "/")
        guard let last = parts.last else { return }
        guard parts.allSatisfy({ $0.utf8.count <= Int(NAME_MAX) }) else { return state.withLock { $0.unnamable += 1 } }
        let place = Place(folder: try folder(parts.dropLast().joined(separator: "/")), name: String(last), path: name)
        guard copyMode == .links, !entry.isInShard else { return try copy(entry, place, because: nil) }
        let code = entry.link(into: place.folder.descriptor, as: place.name)
        switch code {
        case 0: state.withLock { $0.linked += 1 }
        case EEXIST: try compare(entry, place)
        // ENOENT: no /proc, or the cache has removed the file since it was opened.
        case EXDEV, EPERM, EMLINK, EOPNOTSUPP, ENOSYS, ENOENT: try copy(entry, place, because: code)
        default: throw failed(name, code)
        }
    }

    private struct Place {
        let folder: OpenFolder
        let name: String
        let path: String
    }

    /// A subfolder, created if needed; symbolic links are not followed.
    private func folder(_ path: String) throws(PrefetchError) -> OpenFolder {
        if path.isEmpty { return folder }
        if let known = recent.withLock({ $0?.path == path ? $0?.folder : nil }) { return known }
        var folder = folder
        for part in path.split(separator: "/") {
            guard let next = OpenFolder(String(part), in: folder) else { throw failed(path, errno) }
            folder = next
        }
        recent.withLock { [folder] in $0 = (path, folder) }
        return folder
    }

    func skip() { state.withLock { $0.without += 1 } }

    /// * `reason`: an errno; nil: copies were requested.
    private func copy(_ entry: CacheEntry, _ place: Place, because reason: Int32?) throws(PrefetchError) {
        guard let file = TemporaryFile(in: place.folder) else { throw failed(place.path, errno) }
        var code = entry.copy(to: file.descriptor)
        if code == 0 { code = file.publish(as: place.name) }
        if code == EEXIST { return try compare(entry, place) }
        guard code == 0 else { throw failed(place.path, code) }
        let isFirst = state.withLock { tally in
            tally.copied += 1
            return tally.copied == 1
        }
        guard isFirst, let reason else { return }
        onFirstCopy(
            reason == EXDEV
                ? "\(path) is on another file system than the cache"
                : "the file system refuses hard links in \(path) (\(String(cString: strerror(reason))))")
    }

    private func compare(_ entry: CacheEntry, _ place: Place) throws(PrefetchError) {
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        let file = clinux_open_beneath(place.folder.descriptor, place.name, flags, 0)
        defer { if file >= 0 { close(file) } }
        guard file >= 0, entry.isSame(as: file) else { throw Self.taken("\(path)/\(place.path)") }
        if copyMode == .copies, futimens(file, nil) != 0 { throw failed(place.path, errno) }
        state.withLock { $0.present += 1 }
    }

    static func taken(_ path: String) -> PrefetchError {
        PrefetchError(
            .cacheUnavailable, "\(path) is there already and is another file; it was not overwritten",
            hint: "choose an empty folder, or move that file away")
    }

    private func failed(_ name: String, _ code: Int32) -> PrefetchError {
        PrefetchError(
            .inputOutput, "cannot write \(path)/\(name): \(String(cString: strerror(code)))",
            hint: "make room, and run it again: what is there stays, the rest is added")
    }

    static func make(_ path: String) -> Bool {
        if mkdir(path, 0o777) == 0 || errno == EEXIST { return true }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return false }
        return make(String(path[..<slash])) && (mkdir(path, 0o777) == 0 || errno == EEXIST)
    }

    static func refused(_ path: String, _ code: Int32) -> PrefetchError {
        PrefetchError(
            .cacheUnavailable, "cannot put files into \(path): \(String(cString: strerror(code)))",
            hint: "name a folder that this user may write to")
    }
}
