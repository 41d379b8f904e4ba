/// Lines of the converted list: the URL alone, or an object with its settings (``JSONLine``).
enum ImportedLine {
    /// What is the same in each line of a table.
    struct Form {
        /// What comes before each kept value, and its column: the names, in quotes, in their order.
        fileprivate let values: [(before: [UInt8], column: Int)]

        /// * `kept`: names of columns; one that is there twice has one value.
        init(_ kept: [(name: String, column: Int)]) {
            var named: [ByteText: Int] = [:]
            for (name, column) in kept { named[name] = column }
            values = named.sorted { $0.key < $1.key }.enumerated().map { place, column in
                var before = Array((place == 0 ? "{\"columns\":{" : ",").utf8)
                JSONMembers.quote(Array(column.key.text.utf8)[...], into: &before)
                before.append(UInt8(ascii: ":"))
                return (before, column.value)
            }
        }
    }

    /// A URL that would read as another line, or none, is written as an object, so that each input is one entry.
    /// * `sha256`: empty if none is required.
    /// * `cell`: returns what a kept column has.
    static func write(
        _ url: ArraySlice<UInt8>, sha256: ArraySlice<UInt8> = [], _ form: Form = Form([]),
        _ cell: (_ column: Int) -> ArraySlice<UInt8> = { _ in [] }, to lines: inout [UInt8]
    ) {
        if sha256.isEmpty, form.values.isEmpty, URLLines.isURL(url) {
            lines += url
            return lines.append(UInt8(ascii: "\n"))
        }
        for (before, column) in form.values {
            lines += before
            JSONMembers.quote(repairing: cell(column), into: &lines)
        }
        lines.append(form.values.isEmpty ? UInt8(ascii: "{") : UInt8(ascii: "}"))
        if !form.values.isEmpty { lines.append(UInt8(ascii: ",")) }
        if !sha256.isEmpty {
            lines += sha256Name
            JSONMembers.quote(repairing: sha256, into: &lines)
            lines.append(UInt8(ascii: ","))
        }
        lines += urlName
        JSONMembers.quote(repairing: url, into: &lines)
        lines += lineEnd
    }

    private static let sha256Name = Array("\"sha256\":".utf8)
    private static let urlName = Array("\"url\":".utf8)
    private static let lineEnd = Array("}\n".utf8)
}
