/// Lines of the converted list: the URL alone, or an object with its settings (``JSONLine``).
enum ImportedLine {
    /// What is the same in each line of a table.
    struct Form {
        /// What comes before each kept value, and its column: the names, in quotes, in their order.
        fileprivate let values: [(before: Range<Int>, column: Int)]
        fileprivate let text: [UInt8]

        /// * `kept`: names of columns; one that is there twice has one value.
        init(_ kept: [(name: String, column: Int)]) {
            var named: [ByteText: Int] = [:]
            for (name, column) in kept { named[name] = column }
            var text: [UInt8] = []
            values = named.sorted { $0.key < $1.key }.map { name, column in
                let start = text.count
                text += Array((start == 0 ? "{\"columns\":{" : ",").utf8)
                JSONMembers.quote(Array(name.text.utf8)[...], into: &text)
                text.append(UInt8(ascii: ":"))
                return (start..<text.count, column)
            }
            self.text = text
        }
    }

    /// A URL that would read as another line, or none, is written as an object, so that each input is one entry.
    /// * `sha256`: empty if none is required.
    /// * `cell`: returns what a kept column has.
    static func write(
        _ url: ArraySlice<UInt8>, sha256: ArraySlice<UInt8> = [], _ form: Form = Form([]),
        _ cell: (_ column: Int) -> UnsafeBufferPointer<UInt8> = { _ in UnsafeBufferPointer(start: nil, count: 0) },
        to lines: inout [UInt8]
    ) {
        if sha256.isEmpty, form.values.isEmpty, URLLines.isURL(url) {
            lines += url
            return lines.append(UInt8(ascii: "\n"))
        }
        form.text.withUnsafeBufferPointer { text in
            for (before, column) in form.values {
                lines += UnsafeBufferPointer(rebasing: text[before])
                JSONMembers.quote(repairing: cell(column), into: &lines)
            }
        }
        lines.append(form.values.isEmpty ? UInt8(ascii: "{") : UInt8(ascii: "}"))
        if !form.values.isEmpty { lines.append(UInt8(ascii: ",")) }
        if !sha256.isEmpty {
            lines += sha256Name
            sha256.withUnsafeBufferPointer { JSONMembers.quote(repairing: $0, into: &lines) }
            lines.append(UInt8(ascii: ","))
        }
        lines += urlName
        url.withUnsafeBufferPointer { JSONMembers.quote(repairing: $0, into: &lines) }
        lines += lineEnd
    }

    private static let sha256Name = Array("\"sha256\":".utf8)
    private static let urlName = Array("\"url\":".utf8)
    private static let lineEnd = Array("}\n".utf8)
}
