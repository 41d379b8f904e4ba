internal import FoundationEssentials
internal import Glibc
internal import WebImage

/// Converts compressed lists, tables and sitemaps to lines. Equal inputs make equal lists, so a repeated command continues its batch.
package struct ListImport: Sendable {
    package struct Options: Sendable, Equatable {
        package var format = ListFormat.auto
        /// For a table: name or number of the columns. For lines of JSON, `keepColumns` are names of members.
        package var urlColumn: String?
        package var sha256Column: String?
        package var keepColumns: [String] = []

        package init() {}

        /// Whether the options are valid for lines of JSON too.
        var isOfMembers: Bool { !keepColumns.isEmpty && urlColumn == nil && sha256Column == nil }

        var isOfTable: Bool { urlColumn != nil || sha256Column != nil || !keepColumns.isEmpty }
    }

    private enum Kind: Equatable {
        case lines
        case table(TableGuess.Separator)
        case objects
        case sitemap
    }

    private let path: String
    private let options: Options
    private let kind: Kind
    private let isPacked: Bool
    private let isSpooled: Bool
    private let called: String
    /// Its uncompressed beginning, for messages if it has no URLs.
    let head: [UInt8]

    /// Inspects the beginning of a file; nil if it is a plain list of lines.
    /// * `name`: original name of the file, for its extension and for messages.
    /// * `isSpooled`: a copy of standard input or a pipe, without neighbouring files.
    /// - Throws: `notFound`, `unreadableList`; `configuration` if the options do not match the format.
    package init?(
        path: String, name: String? = nil, isSpooled: Bool = false, options: Options = Options()
    ) throws(PrefetchError) {
        var bytes = try InputBytes(path: path)
        let first = try bytes.next()
        isPacked = bytes.isPacked
        head = Array(first.prefix(4096))
        (self.path, self.options, self.isSpooled) = (path, options, isSpooled)
        called = isSpooled ? name ?? ListFile.name(of: "-") : ListFile.name(of: path)
        kind = try Self.kind(first, name: name ?? path, isPacked: isPacked, options)
        if kind == .lines && options.isOfTable {
            throw PrefetchError(
                .configuration,
                "\(called) is not a table, and --url-column, --sha256-column and --keep-columns are for one",
                hint: "say so where it is: --input-format csv, or tsv")
        }
        if kind == .lines && !isPacked { return nil }
    }

    private static func kind(
        _ head: ArraySlice<UInt8>, name: String, isPacked: Bool, _ options: Options
    ) throws(PrefetchError) -> Kind {
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
        var base = name.lowercased()
        if isPacked, let dot = base.lastIndex(of: ".") { base = String(base[..<dot]) }
        if base.hasSuffix(".csv") { return table(",") }
        if base.hasSuffix(".tsv") || base.hasSuffix(".tab") { return table("\t") }
        let text = head.drop { [0xEF, 0xBB, 0xBF, 0x20, 0x09, 0x0A, 0x0D].contains($0) }
        if isSitemap(text) { return .sitemap }
        guard options.isOfTable else { return TableGuess.separator(ofLines: head).map { .table($0) } ?? .lines }
        if options.isOfMembers && isObjects(text) { return .objects }
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

    /// Writes the list into a folder and returns its path; the name includes the digest of its content.
    /// * `stem`: the start of the name, and so of batch ids.
    /// * `warn`: called with what is probably not meant.
    /// - Throws: `unreadableList` with the line if the input has another format; `inputOutput`, `cacheUnavailable`.
    package func write(
        into folder: String, stem: String, warn: (String) -> Void = { _ in }
    ) throws(PrefetchError) -> String {
        let output = try LineOutput(in: folder)
        try write(to: output, warn)
        return try output.publish(stem: stem)
    }

    /// Writes the list behind what was written.
    func write(to output: LineOutput, _ warn: (String) -> Void) throws(PrefetchError) {
        switch kind {
        case .lines:
            var bytes = try InputBytes(path: path)
            while case let piece = try bytes.next(), !piece.isEmpty { try output.write(piece) }
        case .table(let separator): try writeTable(separator, to: output, warn)
        case .objects: try writeObjects(to: output)
        case .sitemap: try writeSitemap(to: output)
        }
    }

    private func writeObjects(to output: LineOutput) throws(PrefetchError) {
        var members = ListMembers(options.keepColumns, of: called)
        func add(_ line: [UInt8]) throws(PrefetchError) { try output.write(line[...]) }
        var bytes = try InputBytes(path: path)
        while case let piece = try bytes.next(), !piece.isEmpty { try members.read(piece, add) }
        try members.finish(add)
    }

    package struct Header: Sendable {
        package var unused: [String] = []
        /// The column of URLs, if it was neither given nor called url.
        package var guessedURL: String?

        package init() {}
    }

    /// Empty without a header row.
    package func header() throws(PrefetchError) -> Header {
        guard case .table(let separator) = kind, let (columns, first) = try layout(separator) else { return Header() }
        var found = Header()
        found.unused = columns.unused(first)
        if columns.hasHeader, options.urlColumn == nil, URLColumn.rank(first[columns.url]) != 0 {
            found.guessedURL = first[columns.url]
        }
        return found
    }

    /// What is where in a table, by its first rows, and the first of them; nil if there are none.
    private func layout(
        _ separator: TableGuess.Separator
    ) throws(PrefetchError) -> (columns: TableColumns, first: [String])? {
        var rows: [[String]] = []
        var reader = CSVReader(separator: separator.byte)
        func take(_ record: CSVReader.Record) {
            if rows.count <= TableGuess.rows { rows.append(record.fields.map(URLColumn.url)) }
        }
        // A first row that says it all need not be followed by others.
        func columns() throws(PrefetchError) -> TableColumns {
            try TableColumns(rows[separator.skipped], Array(rows.dropFirst(separator.skipped + 1)), options)
        }
        var bytes = try InputBytes(path: path)
        while rows.count <= TableGuess.rows, case let piece = try bytes.next(), !piece.isEmpty {
            try reader.read(piece, take)
            if rows.count > separator.skipped, let found = try? columns() { return (found, rows[separator.skipped]) }
        }
        if rows.count <= TableGuess.rows { try reader.finish(take) }
        guard rows.count > separator.skipped else { return nil }
        return (try columns(), rows[separator.skipped])
    }

    /// Rows become lines with the numbers of their first lines, so that messages fit the table.
    private func writeTable(
        _ separator: TableGuess.Separator, to output: LineOutput, _ warn: (String) -> Void
    ) throws(PrefetchError) {
        guard let columns = try layout(separator)?.columns else { return }
        var reader = CSVReader(separator: separator.byte)
        var (rows, odd) = (0, 0)
        func add(_ record: CSVReader.Record) throws(PrefetchError) {
            func cell(_ column: Int) -> [UInt8]? {
                record.fields.indices.contains(column) ? record.fields[column] : nil
            }
            rows += 1
            guard rows > separator.skipped else { return }
            if let tall = record.tall, tall.isOdd {
                odd += 1
                if odd <= Self.mostOdd { warn(Self.warning(of: tall)) }
            }
            try output.skip(to: output.first + record.line - 1)
            if rows == separator.skipped + 1 && columns.hasHeader { return }
            var line = ImportedLine(url: cell(columns.url).map(URLColumn.url) ?? "")
            line.sha256 = columns.sha256.flatMap(cell).map { String(decoding: URLColumn.trimmed($0), as: UTF8.self) }
            if line.sha256?.isEmpty == true { line.sha256 = nil }
            for (name, column) in columns.kept {
                line.columns[name] = cell(column).map { String(decoding: $0, as: UTF8.self) } ?? ""
            }
            let bytes = line.bytes
            guard bytes.count <= LineReader.longest else { throw LineReader.tooLong(record.line, called) }
            try output.write(bytes[...])
        }
        var bytes = try InputBytes(path: path)
        while case let piece = try bytes.next(), !piece.isEmpty { try reader.read(piece, add) }
        try reader.finish(add)
        if odd > Self.mostOdd { warn("\(odd - Self.mostOdd) more quoted fields are as long") }
    }

    /// Warnings that name their line.
    private static let mostOdd = 5

    private static func warning(of field: CSVReader.Tall) -> String {
        "the quoted field that begins in line \(field.line) has \(field.lines) lines"
            + (field.hasURL ? ", and a URL in them" : "") + "; if its quote is not meant, rows are lost in it"
    }

    /// Writes the images of a sitemap; its pages if it has no images. Sitemaps of an index are read from its folder.
    private func writeSitemap(to output: LineOutput) throws(PrefetchError) {
        var (images, maps) = (0, [(address: String, line: Int)]())
        try Self.read(path) { kind, address, line throws(PrefetchError) in
            if kind == .image { images += 1 }
            if kind == .sitemap { maps.append((address, line)) }
        }
        guard !maps.isEmpty else { return try Self.writeSitemap(path, images > 0 ? .image : .page, to: output) }
        var known: [ByteText: (address: String, line: Int)] = [:]
        for map in maps {
            let file = try local(map.address, line: map.line)
            if let other = known.updateValue(map, forKey: file), !other.address.hasBytes(of: map.address) {
                throw PrefetchError(
                    .unreadableList,
                    "lines \(other.line) and \(map.line) of \(path) name two sitemaps, and both would be \(file)",
                    hint: "submit each by itself, as files of two names")
            }
            var images = 0
            try Self.read(file, name: file) { kind, _, _ throws(PrefetchError) in
                if kind == .image { images += 1 }
                if kind == .sitemap {
                    throw PrefetchError(
                        .unreadableList, "line \(map.line) of \(path) names \(file), which is an index too",
                        hint: "an index names sitemaps only; submit \(file) by itself")
                }
            }
            try Self.writeSitemap(file, images > 0 ? .image : .page, to: output)
        }
    }

    private static func writeSitemap(
        _ path: String, _ wanted: SitemapReader.Kind, to output: LineOutput
    ) throws(PrefetchError) {
        try read(path) { kind, address, _ throws(PrefetchError) in
            if kind == wanted { try output.write(ImportedLine(url: address).bytes[...]) }
        }
    }

    private static func read(
        _ path: String, name: String = "the sitemap",
        _ body: (SitemapReader.Kind, String, Int) throws(PrefetchError) -> Void
    ) throws(PrefetchError) {
        var reader = SitemapReader(name: name)
        var bytes = try InputBytes(path: path)
        while case let piece = try bytes.next(), !piece.isEmpty { try reader.read(piece, body) }
        try reader.finish()
    }

    /// The file in the index's folder that has the name of an address.
    private func local(_ address: String, line: Int) throws(PrefetchError) -> String {
        let names = "line \(line) of \(called) names \(address)"
        let together = "nothing is fetched for a list: fetch all of its sitemaps into one folder with it"
        guard !isSpooled else {
            throw PrefetchError(
                .unreadableList, "\(names), a sitemap, and there is nothing beside \(called)",
                hint: "\(together), and submit the file of the index")
        }
        let place = address.prefix { $0 != "?" && $0 != "#" }
        let route = place.firstRange(of: "://").map { place[$0.upperBound...].drop { $0 != "/" } } ?? place
        let name = String(route.split(separator: "/", omittingEmptySubsequences: false).last ?? "")
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        guard !name.isEmpty, name != ".", name != ".." else {
            throw PrefetchError(
                .unreadableList, "\(names), which is the address of no file",
                hint: "submit that sitemap by itself, as a file: curl -sS -o sitemap.xml URL")
        }
        guard PathText.withBytes(folder + name, { access($0, R_OK) }) == 0 else {
            throw PrefetchError(
                .unreadableList, "\(names), and there is no \(folder)\(name)",
                hint: "\(together), for example: curl -sS --remote-name-all URL…")
        }
        return folder + name
    }
}
