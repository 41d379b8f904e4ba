internal import FoundationEssentials
internal import Glibc
internal import Prefetch
internal import Threading

/// A list as a command was given it: files, folders of them, pipes by their paths, `-`, or addresses.
struct GivenList {
    /// Files and addresses of files.
    let files: [String]
    private let fetcher: ListFetcher?

    /// * `words`: what was given.
    /// * `fetch`: how addresses are requested.
    /// * `state`: where what was fetched is kept.
    /// - Throws: as ``ListPaths`` and ``ListFetcher``.
    init(
        _ words: [String], _ fetch: @autoclosure () throws(PrefetchError) -> FetchSettings, _ state: StateFolder
    ) async throws(PrefetchError) {
        guard words.contains(where: ListFetcher.isAddress) else {
            (files, fetcher) = (try ListPaths.files(words), nil)
            return
        }
        let fetcher = try ListFetcher(
            fetch().downloads(), in: state, hub: ListFetcher.Hub { getenv($0).map { String(cString: $0) } },
            notice: FetchNotes().tell)
        var files: [String] = []
        for word in words {
            files += ListFetcher.isAddress(word) ? try await fetcher.files([word]) : try ListPaths.files([word])
        }
        (self.files, self.fetcher) = (files, fetcher)
    }

    /// Opens it, reads its beginning, and says what is probably not meant.
    ///
    /// * `limit`: the list ends behind so many entries.
    /// - Throws: as ``ListStream``.
    func open(_ table: TableOptions, limit: Int? = nil) async throws(PrefetchError) -> ListStream {
        guard let fetcher else { return try Self.open(files, table, nil, limit: limit) }
        // The first list is waited for.
        return try await ThreadPool(threads: 1, name: "list").run { [files] () throws(PrefetchError) in
            try Self.open(files, table, fetcher, limit: limit)
        }
    }

    private static func open(
        _ files: [String], _ table: TableOptions, _ fetcher: ListFetcher?, limit: Int?
    ) throws(PrefetchError) -> ListStream {
        let list = try ListStream(files, options: table.options, fetcher: fetcher, limit: limit) { notice in
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

    /// Opens it for a command that keeps nothing of it.
    /// - Throws: as ``open(_:limit:)`` and `body`; `inputOutput`.
    func use<Result>(
        _ table: TableOptions, limit: Int? = nil, _ body: (ListStream) async throws -> Result
    ) async throws -> Result {
        // Lines of pipes and tables are read again from there.
        var template = Array("\(ListFile.temporaryFolder)/prefetch-list-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw PrefetchError(
                .inputOutput,
                "cannot make a folder in \(ListFile.temporaryFolder): \(String(cString: strerror(errno)))",
                hint: "set TMPDIR to a folder that this user may write")
        }
        let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let list = try await open(table, limit: limit)
        try list.keep(in: folder)
        return try await body(list)
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

/// What is said of lists that are fetched: a line every ten seconds, and at the end.
private final class FetchNotes: Sendable {
    private static let interval = 10.0
    private static let firstAfter = 2.0

    /// When the next line is due.
    private let last = Locked<[ByteText: Double]>([:])

    @Sendable func tell(_ notice: ListFetcher.Notice) {
        switch notice {
        case .fetching(let address, let received, let expected):
            let now = MonotonicClock.now
            let isDue = last.withLock { last in
                let due = last[ByteText(address)] ?? now + Self.firstAfter
                last[ByteText(address)] = now < due ? due : now + Self.interval
                return now >= due
            }
            guard isDue else { return }
            let whole = expected > 0 ? " of \(Wording.bytes(expected))" : ""
            Console.note("\(Wording.bytes(received))\(whole) fetched from \(name(address))")
        case .fetched(let address, let bytes):
            Console.note("\(Wording.bytes(bytes)) fetched from \(name(address))")
        case .unchanged(let address):
            Console.note("\(name(address)) has not changed since it was fetched")
        case .unasked(let address, let reason):
            Console.note(
                "warning: \(TerminalText.escaped(reason)), so nobody knows whether \(name(address)) has changed; "
                    + "the copy of it is read")
        case .unmeasured(let address):
            Console.note(
                "warning: the server of \(name(address)) gives no length: whether the list is whole is not known")
        }
    }

    private func name(_ address: String) -> String { TerminalText.escaped(ListFile.name(of: address)) }
}

extension BatchStatus {
    /// The words of a command that read its list again: a pipe as far as it was read.
    var listWords: String {
        let isOfPipe = sources.contains { $0 == "-" || $0 == "pipe" }
        return (sources.isEmpty || isOfPipe ? [listPath] : sources).map { Shell.quoted(Shell.path($0)) }
            .joined(separator: " ")
    }
}
