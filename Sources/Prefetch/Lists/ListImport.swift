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
        case table(separator: UInt8)
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
        called = isSpooled ? name ?? ListFile.name(of: "-") : path
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
        switch options.format {
        case .csv: return .table(separator: UInt8(ascii: ","))
        case .tsv: return .table(separator: UInt8(ascii: "\t"))
        case .sitemap: return .sitemap
        case .plain: return .lines
        case .jsonl: return options.isOfMembers ? .objects : .lines
        case .auto: break
        }
        var base = name.lowercased()
        if isPacked, let dot = base.lastIndex(of: ".") { base = String(base[..<dot]) }
        if base.hasSuffix(".csv") { return .table(separator: UInt8(ascii: ",")) }
        if base.hasSuffix(".tsv") || base.hasSuffix(".tab") { return .table(separator: UInt8(ascii: "\t")) }
        let text = head.drop { [0xEF, 0xBB, 0xBF, 0x20, 0x09, 0x0A, 0x0D].contains($0) }
        if isSitemap(text) { return .sitemap }
        guard options.isOfTable else { return .lines }
        if options.isOfMembers && isObjects(text) { return .objects }
        let first = head.prefix { $0 != UInt8(ascii: "\n") }
        return .table(separator: first.contains(UInt8(ascii: "\t")) ? UInt8(ascii: "\t") : UInt8(ascii: ","))
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
    /// - Throws: `unreadableList` with the line if the input has another format; `inputOutput`, `cacheUnavailable`.
    package func write(into folder: String, stem: String) throws(PrefetchError) -> String {
        guard let open = OpenFolder(folder), let file = TemporaryFile(in: open) else {
            throw PrefetchError(
                .cacheUnavailable, "cannot write into \(folder): \(String(cString: strerror(errno)))",
                hint: "choose a folder that this user may write: --cache DIR")
        }
        let output = LineOutput(file: file, path: folder)
        switch kind {
        case .lines:
            var bytes = try InputBytes(path: path)
            while case let piece = try bytes.next(), !piece.isEmpty { try output.write(piece) }
        case .table(let separator): try writeTable(separator, to: output)
        case .objects: try writeObjects(to: output)
        case .sitemap: try writeSitemap(to: output)
        }
        let name = "\(stem).\(try output.finish().prefix(16)).list"
        let code = file.publish(replacing: name)
        guard code == 0 else {
            throw PrefetchError(
                .inputOutput, "cannot write \(folder)/\(name): \(String(cString: strerror(code)))",
                hint: "make room in \(folder)")
        }
        return "\(folder)/\(name)"
    }

    private func writeObjects(to output: LineOutput) throws(PrefetchError) {
        var members = ListMembers(options.keepColumns)
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
        guard case .table(let separator) = kind else { return Header() }
        var header: Header?
        var reader = CSVReader(separator: separator)
        func look(_ record: CSVReader.Record) throws(PrefetchError) {
            guard header == nil else { return }
            let names = record.fields.map { String(decoding: $0, as: UTF8.self) }
            let columns = try TableColumns(names, options)
            var found = Header()
            found.unused = columns.unused(names)
            if columns.hasHeader, options.urlColumn == nil, names[columns.url].lowercased() != "url" {
                found.guessedURL = names[columns.url]
            }
            header = found
        }
        var bytes = try InputBytes(path: path)
        while header == nil, case let piece = try bytes.next(), !piece.isEmpty { try reader.read(piece, look) }
        if header == nil { try reader.finish(look) }
        return header ?? Header()
    }

    /// Rows become lines with the same numbers, so that messages fit the table.
    private func writeTable(_ separator: UInt8, to output: LineOutput) throws(PrefetchError) {
        var columns: TableColumns?
        var reader = CSVReader(separator: separator)
        func add(_ record: CSVReader.Record) throws(PrefetchError) {
            func text(_ column: Int) -> String? {
                record.fields.indices.contains(column) ? String(decoding: record.fields[column], as: UTF8.self) : nil
            }
            let isFirst = columns == nil
            let layout =
                if let columns { columns } else {
                    try TableColumns(record.fields.map { String(decoding: $0, as: UTF8.self) }, options)
                }
            columns = layout
            try output.skip(to: record.line)
            if isFirst && layout.hasHeader { return }
            var line = ImportedLine(url: text(layout.url) ?? "")
            line.sha256 = layout.sha256.flatMap { text($0) }.flatMap { $0.isEmpty ? nil : $0 }
            for (name, column) in layout.kept { line.columns[name] = text(column) ?? "" }
            try output.write(line.bytes[...])
        }
        var bytes = try InputBytes(path: path)
        while case let piece = try bytes.next(), !piece.isEmpty { try reader.read(piece, add) }
        try reader.finish(add)
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
        guard access(folder + name, R_OK) == 0 else {
            throw PrefetchError(
                .unreadableList, "\(names), and there is no \(folder)\(name)",
                hint: "\(together), for example: curl -sS --remote-name-all URL…")
        }
        return folder + name
    }
}
