internal import WebImage

/// A row of a shard's table: a line of the list, and what became of it.
struct ShardRow {
    /// What img2dataset and this program write behind the columns of a list.
    private static let written = [
        "key", "status", "error_message", "width", "height", "original_width", "original_height", "exif", "sha256",
        "stored_sha256", "md5", "sha512",
    ]
    let key: String
    let url: String
    /// Why it has no image.
    let message: String?
    /// Of the image, and of what it was made of.
    let size: PixelSize?, original: PixelSize?
    /// Of what was fetched.
    let contentDigest: Digest?
    /// The key of the row that has the same image.
    let duplicateOf: String?
    /// The line again, with the columns that the list had.
    let line: [UInt8]

    /// Nil of a row without a key.
    /// * `added`: columns that are none of the list's.
    init?(_ bytes: [UInt8], _ added: [ShardOptions.Added]) {
        guard let row = JSONLine.read(bytes), let columns = row.columns, let key = columns["key"] else { return nil }
        func number(_ name: String) -> Int? { columns[name].flatMap { Int($0.text) } }
        func pixels(_ width: String, _ height: String) -> PixelSize? {
            guard let width = number(width), let height = number(height), width > 0, height > 0 else { return nil }
            return PixelSize(width: width, height: height)
        }
        self.key = key.text
        url = row.url ?? ""
        let reason = columns["error_message"]?.text ?? ""
        message = reason.isEmpty ? nil : reason
        size = pixels("width", "height")
        original = pixels("original_width", "original_height")
        contentDigest = columns["sha256"].flatMap { Digest(hex: $0.text.lowercased()) }
        let twin = added.contains(.duplicateOf) ? columns[ShardOptions.Added.duplicateOf.rawValue]?.text ?? "" : ""
        duplicateOf = twin.isEmpty ? nil : twin
        let own = Self.written + added.map(\.rawValue)
        let kept = columns.filter { column in !own.contains { $0.utf8.elementsEqual(column.key.utf8) } }
        var line = Array("{".utf8)
        if !kept.isEmpty {
            line += Array("\"columns\":{".utf8)
            for (place, column) in kept.sorted(by: { ByteText($0.key) < ByteText($1.key) }).enumerated() {
                if place > 0 { line.append(UInt8(ascii: ",")) }
                line += JSONMembers.quoted(column.key.utf8) + [UInt8(ascii: ":")]
                switch column.value {
                case .text(let text): line += JSONMembers.quoted(text.utf8)
                case .json(let json): line += Array(json.utf8)
                }
            }
            line += Array("},".utf8)
        }
        self.line = line + Array("\"url\":".utf8) + JSONMembers.quoted(url.utf8) + Array("}\n".utf8)
    }

    /// The rows of a table, in the order of their keys, and which columns were added to it.
    /// - Throws: `unreadableList` if it cannot be read, or is not of a shard.
    static func all(of path: String) throws(PrefetchError) -> (rows: [ShardRow], added: [ShardOptions.Added]) {
        var options = ListInput.Options()
        let names = try names(of: path)
        options.keepColumns = names
        let added = ShardOptions.added(names)
        let input = try ListInput([path], options: options) { _ in }
        var bytes: [UInt8] = []
        reading: while true {
            switch try input.next(waitLimit: -1) {
            case .lines(let lines): bytes += lines
            case .nothing: continue
            case .end: break reading
            }
        }
        var rows: [ShardRow] = []
        var reader = LineReader(bytes, called: path)
        while let line = try reader.next() {
            guard let row = ShardRow(line, added) else {
                throw notOfShard(path, "line \(reader.lineNumber) has no key")
            }
            rows.append(row)
        }
        return (rows.sorted { ByteText($0.key) < ByteText($1.key) }, added)
    }

    /// Its columns besides the URL.
    private static func names(of path: String) throws(PrefetchError) -> [String] {
        var names: [String]
        if path.hasSuffix(".parquet") {
            names = try ParquetProgram.find().columns(of: path, where: nil).columns.map(\.name)
        } else {
            var reader = try LineReader(path: path)
            guard let first = try reader.next(), let members = JSONMembers(first) else { return [] }
            names = members.names
        }
        guard names.contains(where: { $0.utf8.elementsEqual("key".utf8) }) else {
            throw notOfShard(path, "it has no column key")
        }
        names.removeAll { $0.utf8.elementsEqual("url".utf8) }
        return names
    }

    private static func notOfShard(_ path: String, _ reason: String) -> PrefetchError {
        PrefetchError(
            .unreadableList, "\(PathText.shown(path)) is no table of a shard: \(reason)",
            hint: "heal takes a folder that img2dataset or run --format webdataset has written")
    }
}
