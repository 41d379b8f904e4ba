internal import FoundationEssentials

/// A line of the converted list: the URL alone, or an object with its settings (``JSONLine``).
struct ImportedLine: Encodable {
    var url: String
    var sha256: String?
    var columns: [String: String] = [:]

    private enum CodingKeys: CodingKey {
        case url, sha256, columns
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(url, forKey: .url)
        try container.encodeIfPresent(sha256, forKey: .sha256)
        if !columns.isEmpty { try container.encode(columns, forKey: .columns) }
    }

    /// Including the line end. A URL that would read as another line, or none, is written as an object, so that each input is one entry.
    var bytes: [UInt8] {
        if sha256 == nil, columns.isEmpty, URLLines.isURL(url) { return Array(url.utf8) + [UInt8(ascii: "\n")] }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array((try? encoder.encode(self)) ?? Data(#"{"url":""}"#.utf8)) + [UInt8(ascii: "\n")]
    }
}
