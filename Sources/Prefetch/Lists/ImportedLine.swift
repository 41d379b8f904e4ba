/// A line of the converted list: the URL alone, or an object with its settings (``JSONLine``).
struct ImportedLine {
    var url: String
    var sha256: String?
    var columns: [String: String] = [:]

    /// Including the line end. A URL that would read as another line, or none, is written as an object, so that each input is one entry.
    var bytes: [UInt8] {
        if sha256 == nil, columns.isEmpty, URLLines.isURL(url) { return Array(url.utf8) + [UInt8(ascii: "\n")] }
        var members: [(name: String, value: [UInt8])] = []
        if !columns.isEmpty {
            let texts = columns.map { (name: $0.key, value: JSONMembers.quoted($0.value.utf8)) }
            members.append(("columns", Self.object(texts.sorted { ByteText($0.name) < ByteText($1.name) })))
        }
        if let sha256 { members.append(("sha256", JSONMembers.quoted(sha256.utf8))) }
        members.append(("url", JSONMembers.quoted(url.utf8)))
        return Self.object(members) + [UInt8(ascii: "\n")]
    }

    /// * `members`: in their order, with values of JSON.
    static func object(_ members: [(name: String, value: [UInt8])]) -> [UInt8] {
        var out: [UInt8] = [UInt8(ascii: "{")]
        for (name, value) in members {
            if out.count > 1 { out.append(UInt8(ascii: ",")) }
            out += JSONMembers.quoted(name.utf8)
            out.append(UInt8(ascii: ":"))
            out += value
        }
        out.append(UInt8(ascii: "}"))
        return out
    }
}
