internal import Glibc
internal import Prefetch

/// A list as a command was given it: files, folders of them, pipes by their paths, or `-`.
enum GivenList {
    /// Opens it, reads its beginning, and says what is probably not meant.
    ///
    /// * `files`: of ``ListPaths``.
    /// * `limit`: the list ends behind so many entries.
    /// - Throws: as ``ListStream``.
    static func open(_ files: [String], _ table: TableOptions, limit: Int? = nil) throws(PrefetchError) -> ListStream {
        let list = try ListStream(files, options: table.options, limit: limit) { notice in
            switch notice {
            case .waiting(let path): tellWaiting(path)
            case .warning(let text, let name): Console.note("warning: \(TerminalText.escaped(name)): \(text)")
            case .header(let header, _):
                if let column = header.guessedURL {
                    Console.note(
                        "note: URLs are read from the column '\(TerminalText.escaped(column))'; --url-column names another"
                    )
                }
                if let column = header.caption {
                    Console.note("note: the column '\(TerminalText.escaped(column))' is kept, for captions")
                }
            }
        }
        if list.isWhole { judge(list.reading.parts) }
        return list
    }

    /// Says which names in the files of a list nothing uses.
    static func judge(_ parts: [ListStream.Part]) {
        for part in parts { TableOptions.judge(part.unknownMembers, columns: part.unused, of: part.name) }
    }

    /// A list without a URL is an error: more often a pipeline has failed than nobody meant to fetch anything.
    /// - Throws: `unreadableList` where there is none.
    static func requireURLs(_ count: Int, of name: String) throws(PrefetchError) {
        guard count == 0 else { return }
        throw PrefetchError(.unreadableList, "\(name) has no URL", hint: "what wrote it may have failed")
    }

    /// The words of a command line that give this list again.
    static func words(_ paths: [String], _ list: URLList) -> String {
        let named = paths.contains(where: ListFile.isStream) ? [list.path] : paths
        return named.map { Shell.quoted(Shell.path($0)) }.joined(separator: " ")
    }

    /// What `--list` of a command names, as a path that can be read several times while the command runs.
    /// - Throws: as ``ListFile/repeatable(_:waiting:)``.
    static func repeatable(_ path: String?) throws(PrefetchError) -> String? {
        guard let path else { return nil }
        return try ListFile.repeatable(path) { tellWaiting(path) }
    }

    /// Says on a terminal what keeps a command.
    private static func tellWaiting(_ path: String) {
        guard Console.isTerminal(STDERR_FILENO) else { return }
        Console.note("waiting for a writer of \(TerminalText.escaped(path))")
    }

    /// Where a list of a batch is kept; nil where this user can keep nothing and need not.
    static func folder(
        of list: ListStream, _ place: RedisLocation.Place, _ state: StateFolder
    ) throws(PrefetchError) -> String? {
        if case .cache(let cache) = place {
            return try RunState.open(cache, in: state) { Console.note("note: \($0)") }.lists()
        }
        // Results are elsewhere: a user without a state folder, as in a container, has to keep the file.
        if let folder = try? state.lists() { return folder }
        return list.isPlain ? nil : ListFile.temporaryFolder
    }
}

extension BatchStatus {
    /// The words of a command that read its list again: a pipe as far as it was read.
    var listWords: String {
        let isOfPipe = sources.contains { $0 == "-" || $0 == "pipe" }
        return (sources.isEmpty || isOfPipe ? [listPath] : sources).map { Shell.quoted(Shell.path($0)) }
            .joined(separator: " ")
    }
}
