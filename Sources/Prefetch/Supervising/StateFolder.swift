internal import Glibc

/// The folder for what this user's runs keep: a given one, or `$XDG_STATE_HOME/prefetch`, by default `~/.local/state/prefetch`.
package struct StateFolder: Sendable {
    /// Absolute; nil if neither a variable nor the user database names a home.
    package let path: String?

    /// * `path`: created when it is first used; nil for a user without one.
    package init(path: String?) {
        self.path = path.map { path in
            guard path.utf8.first != UInt8(ascii: "/"), let here = getcwd(nil, 0) else { return path }
            defer { free(here) }
            return "\(String(cString: here))/\(path)"
        }
    }

    /// By the XDG Base Directory Specification, which treats a relative path as unset.
    package init(variable: (String) -> String?) {
        if let state = variable("XDG_STATE_HOME"), state.hasPrefix("/") {
            path = state + "/prefetch"
        } else {
            path = (variable("HOME").flatMap { $0.hasPrefix("/") ? $0 : nil } ?? Self.home)
                .map { ($0 == "/" ? "" : $0) + "/.local/state/prefetch" }
        }
    }

    package static var ofUser: StateFolder { StateFolder { getenv($0).map { String(cString: $0) } } }

    /// Opens it where it exists.
    /// - Throws: `cacheUnavailable` if it is not private to this user.
    func existing() throws(PrefetchError) -> PinnedFolder? {
        var status = stat()
        guard let path, lstat(path, &status) == 0 else { return nil }
        return try pinned(path)
    }

    /// Opens it, creating it with the mode 0700 if missing.
    /// - Throws: `cacheUnavailable` if it cannot be created, or is not private to this user.
    func open() throws(PrefetchError) -> PinnedFolder {
        guard let path else {
            throw Self.unusable("this user has no home folder")
        }
        if mkdir(path, 0o700) != 0, errno != EEXIST {
            do throws(PrefetchError) { try Self.makeParents(of: path) } catch { throw Self.unusable(error.message) }
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
                throw Self.unusable(PrefetchError.file("make", path).message)
            }
        }
        return try pinned(path)
    }

    /// The folder for copies of lists whose batches are in another Redis, created if missing.
    /// - Throws: as ``open()``.
    package func lists() throws(PrefetchError) -> String {
        let folder = try open()
        try folder.make("lists", mode: 0o700)
        guard let lists = try folder.folder("lists") else { throw .file("open", "\(folder.path)/lists") }
        if let fault = PinnedFolder.fault(of: lists.status, isFolder: true) { throw .notOurs(lists.path, fault) }
        return lists.path
    }

    private func pinned(_ path: String) throws(PrefetchError) -> PinnedFolder {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw Self.unusable(PrefetchError.file("open", path).message) }
        let folder: PinnedFolder
        do throws(PrefetchError) {
            if let fault = PinnedFolder.fault(of: status, isFolder: true) { throw .notOurs(path, fault) }
            folder = try PinnedFolder(path: path)
        } catch {
            throw Self.unusable(error.message)
        }
        // It may have been replaced between the two checks.
        if let fault = PinnedFolder.fault(of: folder.status, isFolder: true) { throw Self.unusable("\(path) \(fault)") }
        return folder
    }

    private static func unusable(_ reason: String) -> PrefetchError {
        PrefetchError(
            .cacheUnavailable, "the state of runs cannot be kept: \(reason)",
            hint: "name a folder that only this user may write: --state DIR (PREFETCH_STATE), or a Redis: --redis URL")
    }

    private static func makeParents(of path: String) throws(PrefetchError) {
        guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return }
        let parent = String(path[..<slash])
        if mkdir(parent, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT else { throw .file("make", parent) }
        try makeParents(of: parent)
        guard mkdir(parent, 0o700) == 0 || errno == EEXIST else { throw .file("make", parent) }
    }

    /// By the user database, if HOME is not set.
    private static var home: String? {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 1 << 14)
        guard getpwuid_r(geteuid(), &entry, &buffer, buffer.count, &found) == 0, found != nil, let home = entry.pw_dir
        else { return nil }
        let path = String(cString: home)
        return path.hasPrefix("/") ? path : nil
    }
}
