internal import Glibc
internal import Prefetch

/// A list as a command was given it: files, folders of them, pipes by their paths, or `-`. What can be read only once is copied, packed
/// lists, tables and sitemaps are laid out as lines, and several lists are joined to one.
struct GivenList: Sendable {
    let list: URLList
    /// Whether the list is a copy that this command made for itself.
    private let isCopy: Bool

    /// Reads the list.
    ///
    /// * `paths`: files of ``ListPaths``.
    /// * `kept`: where copies are kept.
    /// * `copy`: the only path's content, where that was copied already.
    /// * `limit`: the list is cut behind so many entries.
    /// - Throws: `notFound`, `unreadableList`, also where it has no URL; `inputOutput`, `cacheUnavailable` where it
    ///   cannot be copied. No copy is left then.
    init(
        _ paths: [String], copy: String? = nil, kept: ListFolder, table: TableOptions, limit: Int? = nil
    ) throws(PrefetchError) {
        let place = { () throws(PrefetchError) -> String in try kept.make() }
        guard paths.count == 1, let path = paths.first else {
            let joined = try Self.join(paths, place, table)
            var list = try URLList(path: joined)
            if let limit, let cut = try ListHead.copy(joined, entries: limit, into: place(), stem: list.stem) {
                list = try URLList(path: cut)
            }
            list.sources = Self.sources(paths)
            try Self.requireURLs(list.total, of: Self.name(of: paths))
            (self.list, isCopy) = (list, false)
            return
        }
        let isStream = ListFile.isStream(path)
        let name = ListFile.name(of: path)
        let stem = ListFile.stem(of: path)
        let file =
            if let copy { copy } else if isStream {
                try ListFile.copy(path, into: place()) { Self.tellWaiting(path) }
            } else { path }
        do throws(PrefetchError) {
            let (laidOut, unused) = try Self.layOut(
                file, name: name, stem: stem, isSpooled: isStream, place, table)
            let cut: String? =
                if let limit {
                    try ListHead.copy(laidOut?.path ?? file, entries: limit, into: place(), stem: stem)
                } else { nil }
            var list =
                if let cut {
                    try URLList(path: cut, format: laidOut == nil ? table.inputFormat : .auto, origin: (name, nil))
                } else if let laidOut { laidOut } else {
                    try URLList(path: file, format: table.inputFormat, origin: (name, nil))
                }
            if list.path != path { list.sources = Self.sources(paths) }
            self.list = list
            try Self.requireURLs(list.total, of: name)
            table.judge(list.unknownMembers, columns: unused, of: name)
            isCopy = isStream && laidOut == nil && cut == nil
        } catch {
            if isStream { unlink(file) }
            throw error
        }
        if isStream && !isCopy { unlink(file) }
    }

    /// A list of lines that comes through a pipe.
    /// - Returns: the pipe, or a complete copy where the format needs the whole list first; nil: the list is no pipe.
    /// - Throws: as ``init(_:copy:kept:table:limit:)``.
    static func pipe(
        _ paths: [String], kept: ListFolder, table: TableOptions
    ) throws(PrefetchError) -> (pipe: ListPipe?, copy: String)? {
        guard paths.count == 1, let path = paths.first, ListFile.isStream(path) else { return nil }
        let pipe = try ListPipe(path, into: kept.make(), format: table.inputFormat) { tellWaiting(path) }
        do throws(PrefetchError) {
            if pipe.isOfLines,
                try ListImport(path: pipe.path, name: pipe.name, isSpooled: true, options: table.options) == nil
            {
                return (pipe, pipe.path)
            }
            try pipe.readToEnd()
        } catch {
            unlink(pipe.path)
            throw error
        }
        return (nil, pipe.path)
    }

    /// A list without a URL is an error: more often a pipeline has failed than nobody meant to fetch anything.
    /// - Throws: `unreadableList` where there is none.
    static func requireURLs(_ count: Int, of name: String) throws(PrefetchError) {
        guard count == 0 else { return }
        throw PrefetchError(.unreadableList, "\(name) has no URL", hint: "what wrote it may have failed")
    }

    /// What a list is called in messages.
    static func name(of paths: [String]) -> String {
        let first = paths.first.map { ListFile.name(of: $0) } ?? "the list"
        return paths.count < 2 ? first : "\(first) and \(Wording.count(paths.count - 1, "more list"))"
    }

    /// The words of a command line that give this list again.
    static func words(_ paths: [String], _ list: URLList) -> String {
        let named = paths.contains(where: ListFile.isStream) ? [list.path] : paths
        return named.map { Shell.quoted(Shell.path($0)) }.joined(separator: " ")
    }

    /// The files of the person's own that a list was made of.
    private static func sources(_ paths: [String]) -> [String] {
        paths.filter { !ListFile.isStream($0) }.map { PathText.resolved($0) ?? $0 }
    }

    /// Removes the copy, where nothing needs it.
    func removeCopy() {
        if isCopy { unlink(list.path) }
    }

    /// Whether a list needs a folder in which it is kept as this command reads it.
    static func isKept(_ paths: [String], _ table: TableOptions) throws(PrefetchError) -> Bool {
        guard paths.count == 1, let path = paths.first else {
            for path in paths where !ListFile.isStream(path) { close(try ListFile.open(path)) }
            return true
        }
        if ListFile.isStream(path) { return true }
        return try ListImport(path: path, options: table.options) != nil
    }

    /// What `--list` of a command names, as a path that can be read several times while the command runs.
    /// - Throws: as ``ListFile/repeatable(_:waiting:)``.
    static func repeatable(_ path: String?) throws(PrefetchError) -> String? {
        guard let path else { return nil }
        return try ListFile.repeatable(path) { tellWaiting(path) }
    }

    /// Says on a terminal what keeps a command.
    static func tellWaiting(_ path: String) {
        guard isatty(STDERR_FILENO) == 1 else { return }
        Console.note("waiting for a writer of \(TerminalText.escaped(path))")
    }

    /// Several lists as one, in this order; returns its path.
    private static func join(
        _ paths: [String], _ folder: () throws(PrefetchError) -> String, _ table: TableOptions
    ) throws(PrefetchError) -> String {
        let place = try folder()
        let join = try ListJoin(into: place, options: table.options)
        for path in paths {
            let name = ListFile.name(of: path)
            let isStream = ListFile.isStream(path)
            let file = isStream ? try ListFile.copy(path, into: place) { tellWaiting(path) } : path
            defer { if isStream { unlink(file) } }
            let part = try join.add(file, name: name, isSpooled: isStream) { warn($0, name) }
            tell(part.header, name)
            if part.isEmpty { try Self.requireURLs(0, of: name) }
            table.judge(part.unknownMembers, columns: part.header.unused, of: name)
        }
        return try join.finish(stem: paths.first.map { ListFile.stem(of: $0) } ?? "list")
    }

    private static func warn(_ text: String, _ name: String) {
        Console.note("warning: \(TerminalText.escaped(name)): \(text)")
    }

    private static func tell(_ header: ListImport.Header, _ name: String) {
        guard let column = header.guessedURL else { return }
        Console.note(
            "note: URLs are read from the column '\(TerminalText.escaped(column))'; --url-column names another")
    }

    /// The list that a packed list, a table or a sitemap becomes, and which columns of a table nothing uses; nil where it is a list as it
    /// is.
    private static func layOut(
        _ path: String, name: String, stem: String, isSpooled: Bool, _ folder: () throws(PrefetchError) -> String,
        _ table: TableOptions
    ) throws(PrefetchError) -> (URLList?, unused: [String]) {
        guard
            let found = try ListImport(path: path, name: name, isSpooled: isSpooled, options: table.options)
        else { return (nil, []) }
        let header = try found.header()
        tell(header, name)
        let list = try found.write(into: folder(), stem: stem) { warn($0, name) }
        let format = table.inputFormat
        let isNamed = format == .jsonl || format == .plain
        return (try URLList(path: list, format: isNamed ? format : .auto, origin: (name, found)), header.unused)
    }
}

/// Where lists are kept that are no files of the person's own.
enum ListFolder {
    /// With the state of a cache's runs.
    case state(of: String, StateFolder)
    case folder(String)

    /// For a batch in the Redis of a location: TMPDIR where no cache is named, or where this user can keep no state and the queue is in another
    /// Redis, as in a container.
    static func of(_ location: RedisLocation) throws(PrefetchError) -> ListFolder {
        guard let cache = location.cacheFolder else { return .folder(ListFile.temporaryFolder) }
        if case .server = try location.placeOfWorker(), (try? location.stateFolder.lists()) == nil {
            return .folder(ListFile.temporaryFolder)
        }
        return .state(of: cache, location.stateFolder)
    }

    /// Creates it if missing, and the cache with it; returns its path.
    func make() throws(PrefetchError) -> String {
        switch self {
        case .state(let cache, let state):
            try RunState.open(cache, in: state) { Console.note("note: \($0)") }.lists()
        case .folder(let path): path
        }
    }
}
