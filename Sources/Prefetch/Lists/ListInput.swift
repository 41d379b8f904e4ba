internal import Glibc

/// The lines of what a person has given as a list, as bytes, read once: files and pipes of lines, tables and sitemaps, packed or not, one
/// behind the other. The same files give the same lines.
package final class ListInput {
    package struct Options: Sendable, Equatable {
        package var format = ListFormat.auto
        /// For a table: name or number of the columns. For lines of JSON, `keepColumns` are names of members.
        package var urlColumn: String?
        package var sha256Column: String?
        package var keepColumns: [String] = []
        /// Which rows of a Parquet file are taken, as a condition of SQL.
        package var condition: String?

        package init() {}

        /// Whether the options are valid for lines of JSON too.
        var isOfMembers: Bool { !keepColumns.isEmpty && urlColumn == nil && sha256Column == nil }

        var isOfTable: Bool { urlColumn != nil || sha256Column != nil || !keepColumns.isEmpty }
    }

    package struct Header: Sendable {
        /// Names of columns that nothing uses.
        package var unused: [String] = []
        /// The column of URLs, if it was neither given nor called url.
        package var guessedURL: String?
        /// The column of captions, if it was not asked for and is kept.
        package var caption: String?

        init() {}

        /// * `first`: the first row, or the names of columns.
        init(_ columns: TableColumns, _ first: [String], _ options: Options) {
            unused = columns.unused(first)
            caption = columns.caption
            if columns.hasHeader, options.urlColumn == nil, URLColumn.rank(first[columns.url]) != 0 {
                guessedURL = first[columns.url]
            }
        }
    }

    /// What is said of a list while it is read.
    package enum Notice: Sendable {
        /// Nobody writes to a FIFO.
        case waiting(path: String)
        /// Something that is probably not meant.
        case warning(String, of: String)
        case header(Header, of: String)
    }

    /// A file of the list, in the lines of all.
    struct Beginning {
        /// What it is called in messages.
        var name: String
        /// The number of its first line.
        var line: Int
        /// Its uncompressed beginning.
        var head: [UInt8]
        var unused: [String]
        /// Whether its lines are written here, of rows or objects.
        var isWritten: Bool
    }

    /// What came.
    enum News {
        case lines([UInt8])
        /// Nothing within the limit.
        case nothing
        case end
    }

    private let options: Options
    private let notice: @Sendable (Notice) -> Void
    /// What makes files of addresses.
    private let fetcher: (any ListOpening)?
    private var paths: [String]
    private var part: ListPart
    private var hasEnded = false
    /// Whether the last line has no end yet.
    private var isWithinLine = false
    /// Bytes of the files before, and of all of them; nil if one is a pipe or not here yet.
    private var readBefore = 0
    private let size: Int?
    /// Whether the first one is a copy of what an address leads to.
    private let isFetched: Bool
    /// The files that were begun.
    private(set) var beginnings: [Beginning] = []

    /// Opens the first file, and reads until its format is known.
    /// * `paths`: at least one; addresses only with a `fetcher`.
    /// - Throws: as ``ListPart``, and ``ListOpening``.
    init(
        _ paths: [String], options: Options, fetcher: (any ListOpening)? = nil,
        notice: @escaping @Sendable (Notice) -> Void
    ) throws(PrefetchError) {
        (self.options, self.notice, self.fetcher) = (options, notice, fetcher)
        self.paths = Array(paths.dropFirst())
        let first = try Self.file(paths[0], fetcher, waitLimit: -1)
        part = try Self.open(first ?? paths[0], called: paths[0], options, notice)
        let sizes = ([first ?? paths[0]] + paths.dropFirst()).map {
            ListFile.isStream($0) ? nil : PathText.status($0).map { Int($0.st_size) }
        }
        size = sizes.contains(nil) ? nil : sizes.reduce(0) { $0 + ($1 ?? 0) }
        isFetched = first != paths[0]
        begin(at: 1)
    }

    /// Whether it is one list as it is: lines in a regular file of the user that is not packed.
    var isPlain: Bool { part.isPlain && paths.isEmpty && beginnings.count == 1 && !isFetched }

    /// The file of what is plain.
    var lines: OpenedList { part.lines }

    /// How much of all files has been read, 0 to 1; nil if one is a pipe.
    var share: Double? {
        guard let size, let share = part.share else { return nil }
        return size == 0 ? 1 : min(1, (Double(readBefore) + share * Double(part.size ?? 0)) / Double(size))
    }

    /// The next whole lines.
    /// * `waitLimit`: milliseconds for which it waits for more of a pipe; -1: for as long as it takes.
    /// - Throws: `notFound`, `unreadableList`; of one of several files with its name.
    func next(waitLimit: Int32) throws(PrefetchError) -> News {
        guard !hasEnded else { return .end }
        do throws(PrefetchError) {
            var lines: [UInt8] = []
            let goesOn = try part.read(into: &lines, waitLimit: waitLimit)
            if !lines.isEmpty {
                isWithinLine = lines.last != 0x0A
                return .lines(lines)
            }
            guard !goesOn else { return .nothing }
        } catch {
            throw named(error)
        }
        guard let path = paths.first else {
            hasEnded = true
            return .end
        }
        guard let file = try Self.file(path, fetcher, waitLimit: waitLimit) else { return .nothing }
        paths.removeFirst()
        readBefore += part.size ?? 0
        let line = (beginnings.last?.line ?? 1) + part.lineEnds + (isWithinLine ? 1 : 0)
        do throws(PrefetchError) { part = try Self.open(file, called: path, options, notice) } catch {
            throw Self.named(error, ListFile.name(of: path))
        }
        defer { isWithinLine = false }
        begin(at: line)
        return isWithinLine ? .lines([0x0A]) : .nothing
    }

    /// The file of a path or an address; nil if that is not here yet.
    private static func file(
        _ path: String, _ fetcher: (any ListOpening)?, waitLimit: Int32
    ) throws(PrefetchError) -> String? {
        guard let fetcher, fetcher.isAddress(path) else { return path }
        return try fetcher.file(of: path, waitLimit: waitLimit)
    }

    private static func open(
        _ path: String, called word: String, _ options: Options, _ notice: @escaping @Sendable (Notice) -> Void
    ) throws(PrefetchError) -> ListPart {
        let name = ListFile.name(of: word)
        return try ListPart(path, called: name, options: options, waiting: { notice(.waiting(path: path)) }) {
            notice(.warning($0, of: name))
        }
    }

    /// While a file is read, the next one is fetched.
    private func begin(at line: Int) {
        if let next = paths.first, let fetcher, fetcher.isAddress(next) { fetcher.begin(next) }
        beginnings.append(
            Beginning(
                name: part.name, line: line, head: part.head, unused: part.header.unused, isWritten: part.isWritten))
        notice(.header(part.header, of: part.name))
    }

    private func named(_ error: PrefetchError) -> PrefetchError {
        beginnings.count + paths.count > 1 ? Self.named(error, part.name) : error
    }

    static func named(_ error: PrefetchError, _ name: String) -> PrefetchError {
        var error = error
        if !error.message.contains(name) { error.message = "\(name): \(error.message)" }
        return error
    }
}
