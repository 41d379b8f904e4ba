internal import Glibc
internal import WebImage

/// One of the files or pipes of a list, as lines.
final class ListPart {
    private enum Kind: Equatable {
        case lines
        case table(TableGuess.Separator)
        case objects
        case sitemap
        case parquet
    }

    private enum Maker {
        case lines
        case table(TableLines)
        case objects(ListMembers)
        case sitemap(SitemapLines)
    }

    /// Bytes of the beginning by which its format is known at the latest.
    private static let headSize = 65_536
    /// Bytes in which the columns of a table are found at the latest.
    private static let longestHead = 16 << 20

    let path: String
    /// What it is called in messages.
    let name: String
    let isStream: Bool
    /// What the header of a table says.
    private(set) var header = ListInput.Header()
    /// Whether it is a list as it is: lines in a regular file that is not packed.
    private(set) var isPlain = false
    /// Its uncompressed beginning, for messages if it has no URLs.
    private(set) var head: [UInt8] = []
    /// Its length; nil of a pipe.
    let size: Int?

    private let options: ListInput.Options
    private let warn: @Sendable (String) -> Void
    private var input: InputBytes
    /// Of a Parquet file, and how many there are.
    private var rows: (lines: ParquetRows, count: Int)?
    private var maker = Maker.lines
    /// Bytes that no lines were made of yet.
    private var pending: [UInt8] = []
    private var hasEnded = false
    private var isFinished = false
    /// Line ends that were returned.
    private(set) var lineEnds = 0

    /// Opens it, and reads until its format is known.
    ///
    /// * `name`: what it is called in messages.
    /// * `waiting`: called once if a FIFO has had no writer for a second.
    /// * `warn`: called with what is probably not meant.
    /// - Throws: `notFound`, `unreadableList`; `configuration` if the options do not match the format.
    init(
        _ path: String, called name: String, options: ListInput.Options, waiting: () -> Void,
        warn: @escaping @Sendable (String) -> Void
    ) throws(PrefetchError) {
        (self.path, self.name, self.options, self.warn) = (path, name, options, warn)
        isStream = ListFile.isStream(path)
        input = try InputBytes(path: path, waiting: waiting)
        size = input.size
        try readHead()
        let kind = try kind()
        if options.condition != nil, kind != .parquet {
            throw PrefetchError(
                .configuration, "\(name) is no Parquet file, and --where is about the rows of one",
                hint: "leave it out, or take rows before: duckdb -csv -c \"select … from 'FILE' where …\"")
        }
        if kind == .lines && options.isOfTable {
            throw PrefetchError(
                .configuration,
                "\(name) is not a table, and --url-column, --sha256-column and --keep-columns are for one",
                hint: "say so where it is: --input-format csv, or tsv")
        }
        isPlain = kind == .lines && !input.isPacked && !isStream
        switch kind {
        case .lines:
            if pending.starts(with: [0xEF, 0xBB, 0xBF]) { pending.removeFirst(3) }
        case .objects: maker = .objects(ListMembers(options.keepColumns, of: name))
        case .table(let separator): if let table = try table(separator) { maker = .table(table) }
        case .sitemap: maker = .sitemap(try sitemap())
        case .parquet: try openParquet()
        }
    }

    /// A list as it is.
    var lines: OpenedList { input.opened() }

    /// Whether its lines are written here, of rows or objects.
    var isWritten: Bool {
        switch maker {
        case .table, .objects: true
        case .lines, .sitemap: rows != nil
        }
    }

    /// How much of it was read, 0 to 1; nil of a pipe.
    var share: Double? {
        if let rows { return rows.count == 0 ? 1 : min(1, Double(lineEnds) / Double(rows.count)) }
        return size.map { $0 == 0 ? 1 : min(1, Double(input.place) / Double($0)) }
    }

    /// Appends the next whole lines.
    /// * `waitLimit`: milliseconds for which it waits for more of a pipe; -1: for as long as it takes.
    /// - Returns: false at its end.
    /// - Throws: `unreadableList` with the line if it has another format.
    func read(into lines: inout [UInt8], waitLimit: Int32) throws(PrefetchError) -> Bool {
        let known = lines.count
        defer { lineEnds += lines[known...].withUnsafeBufferPointer { $0.count(of: 0x0A) } }
        if case .sitemap(let sitemap) = maker {
            guard let more = try sitemap.next() else { return false }
            lines += more
            return true
        }
        guard !isFinished else { return false }
        if pending.isEmpty || !pending.contains(0x0A) && isOfLines, !hasEnded { try more(waitLimit) }
        var piece = pending[...]
        if isOfLines, !hasEnded {
            let end = pending.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
            guard end > 0 || pending.count <= LineReader.longest + 1 else {
                throw LineReader.tooLong(lineEnds + 1, path)
            }
            piece = pending[..<end]
        }
        switch maker {
        case .lines: lines += piece
        case .table(var table):
            maker = .lines
            defer { maker = .table(table) }
            try table.read(piece, into: &lines, warn)
            if hasEnded { try table.finish(into: &lines, warn) }
        case .objects(var members):
            maker = .lines
            defer { maker = .objects(members) }
            try members.read(piece, into: &lines)
            if hasEnded { try members.finish(into: &lines) }
        case .sitemap: break
        }
        pending = Array(pending[piece.endIndex...])
        isFinished = hasEnded
        return true
    }

    private var isOfLines: Bool { if case .lines = maker { true } else { false } }

    /// Reads more bytes of it.
    private func more(_ waitLimit: Int32) throws(PrefetchError) {
        let piece =
            if let rows { try rows.lines.next(waitLimit: waitLimit) } else {
                try input.next(waitLimit: waitLimit)
            }
        switch piece {
        case .bytes(let bytes): pending += bytes
        case .nothing: break
        case .end:
            try rows?.lines.finish()
            hasEnded = true
        }
    }

    private func readHead() throws(PrefetchError) {
        while !hasEnded, pending.count < Self.headSize, !(isStream && beginsWithLine) { try more(-1) }
        head = Array(pending.prefix(4_096))
    }

    /// Whether it begins as one URL or object a line does, and not as something of which more has to be known.
    private var beginsWithLine: Bool {
        guard !options.isOfTable, options.format == .auto || options.format == .plain || options.format == .jsonl else {
            return false
        }
        let whole = pending[..<(pending.lastIndex(of: 0x0A) ?? 0)]
        let lines = whole.split(separator: 0x0A).lazy.map { $0.drop { [0xEF, 0xBB, 0xBF, 0x20, 0x09].contains($0) } }
        guard let first = lines.first(where: { URLList.isEntry(Array($0)) }) else { return false }
        if options.format != .auto { return true }
        let line = Array(first.last == 0x0D ? first.dropLast() : first)
        return URLList.entry(line, number: 1)?.isInvalid == false
            && (JSONLine.isOne(line) || !line.contains { [0x09, 0x2C, 0x3B].contains($0) })
    }

    // MARK: Its format

    private func kind() throws(PrefetchError) -> Kind {
        let head = pending[...]
        if !isStream, head.starts(with: "PAR1".utf8) { return .parquet }
        func table(_ usual: Character) -> Kind {
            .table(TableGuess.separator(head, usual: usual.asciiValue ?? 0x2C, options))
        }
        switch options.format {
        case .csv: return table(",")
        case .tsv: return table("\t")
        case .sitemap: return .sitemap
        case .plain: return .lines
        case .jsonl: return options.isOfMembers ? .objects : .lines
        case .auto: break
        }
        var base = path.lowercased()
        if input.isPacked, let dot = base.lastIndex(of: ".") { base = String(base[..<dot]) }
        if base.hasSuffix(".csv") { return table(",") }
        if base.hasSuffix(".tsv") || base.hasSuffix(".tab") { return table("\t") }
        let text = head.drop { [0xEF, 0xBB, 0xBF, 0x20, 0x09, 0x0A, 0x0D].contains($0) }
        if Self.isSitemap(text) { return .sitemap }
        guard options.isOfTable else { return TableGuess.separator(ofLines: head).map { .table($0) } ?? .lines }
        if options.isOfMembers && Self.isObjects(text) { return .objects }
        return table(",")
    }

    /// Whether the first entry of a text is a JSON object.
    private static func isObjects(_ text: ArraySlice<UInt8>) -> Bool {
        let lines = text.split(separator: UInt8(ascii: "\n"), maxSplits: 1_000).lazy
            .map { $0.drop { [0x20, 0x09, 0x0D].contains($0) } }
        return lines.first { !$0.isEmpty && $0.first != UInt8(ascii: "#") }?.first == UInt8(ascii: "{")
    }

    /// Whether a text begins as XML, or with a sitemap's element of any prefix.
    private static func isSitemap(_ text: ArraySlice<UInt8>) -> Bool {
        if ["<?xml", "<!--"].contains(where: { text.starts(with: $0.utf8) }) { return true }
        guard text.first == UInt8(ascii: "<") else { return false }
        let name = text.dropFirst().prefix(100).prefix { $0 > 0x20 && $0 != UInt8(ascii: ">") }
        let local = name.lastIndex(of: UInt8(ascii: ":")).map { name[($0 + 1)...] } ?? name
        return ["urlset", "sitemapindex"].contains { local.elementsEqual($0.utf8) }
    }

    /// Has its rows written as lines: line n is the n-th row that is taken.
    private func openParquet() throws(PrefetchError) {
        let program = try ParquetProgram.find()
        let (columns, count) = try program.columns(of: path, where: options.condition)
        let places: TableColumns
        do throws(PrefetchError) { places = try TableColumns(columns.map(\.name), [], options) } catch {
            var error = error
            error.message = "\(name): \(error.message)"
            error.hint = error.hint.replacing("the first row has", with: "its columns are")
            throw error
        }
        header = ListInput.Header(places, columns.map(\.name), options)
        (pending, hasEnded) = ([], false)
        rows = (try program.rows(of: path, columns, places, where: options.condition), count)
    }

    /// What is where in a table; nil if it has no row.
    private func table(_ separator: TableGuess.Separator) throws(PrefetchError) -> TableLines? {
        while true {
            let isWhole = hasEnded || pending.count > Self.longestHead
            if let found = try TableLines(pending, separator, options, path: path, isWhole: isWhole) {
                header = ListInput.Header(found.columns, found.first, options)
                return found
            }
            guard !isWhole else { return nil }
            try more(-1)
        }
    }

    /// A sitemap is read several times: that of a pipe out of an unnamed copy.
    private func sitemap() throws(PrefetchError) -> SitemapLines {
        guard isStream else { return try SitemapLines(path, called: name, isCopy: false) }
        let file = ListFile.unnamed()
        guard file >= 0 else {
            throw PrefetchError(
                .inputOutput,
                "cannot copy \(name) into \(ListFile.temporaryFolder): \(String(cString: strerror(errno)))",
                hint: "set TMPDIR to a folder that this user may write")
        }
        while true {
            let code = OpenFile.write(pending, to: file)
            guard code == 0 else {
                throw PrefetchError(
                    .inputOutput, "cannot copy \(name): \(String(cString: strerror(code)))",
                    hint: "make room in \(ListFile.temporaryFolder)")
            }
            pending = []
            if hasEnded { break }
            try more(-1)
        }
        // Never closed: the path is valid as long as the descriptor (proc(5)).
        return try SitemapLines("/proc/self/fd/\(file)", called: name, isCopy: true)
    }
}
