internal import FoundationEssentials
internal import WebImage

/// One line of a list of JSON objects: `{"url":"https://…","options":["refreshCached"],"headers":{"Referer":"…"},"sha256":"…",
/// "mirrors":["https://…"]}`. All but the URL may be left out. A member whose name is nearly one of these refuses the list; others are
/// named, and stay in the list.
struct JSONLine: Decodable {
    /// What a line may ask with, and `columns`.
    static let members = ["url", "options", "headers", "sha256", "mirrors", "columns"]

    var url: String?
    var options: [String]?
    var headers: [String: String]?
    var sha256: String?
    var mirrors: [String]?
    /// What the list has beside the URL for manifests; it asks nothing.
    var columns: [String: String]?
    /// Names of members that nothing uses, sorted.
    var others: [String]

    private struct Member: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Member.self)
        func value<Value: Decodable>(_ name: String) throws -> Value? {
            try fields.decodeIfPresent(Value.self, forKey: Member(stringValue: name))
        }
        url = try value("url")
        options = try value("options")
        headers = try value("headers")
        sha256 = try value("sha256")
        mirrors = try value("mirrors")
        columns = try value("columns")
        others = fields.allKeys.map(\.stringValue).filter { !Self.members.contains($0) }.sorted()
    }

    /// Whether a line can be one: no URL begins so.
    static func isOne(_ line: [UInt8]) -> Bool { line.first == UInt8(ascii: "{") }

    /// nil where a line is no such object; one without a URL is.
    init?(_ line: [UInt8]) {
        guard let read = try? JSONDecoder().decode(JSONLine.self, from: Data(line)) else { return nil }
        self = read
    }

    /// Every member of a line; nil where it is no object.
    static func object(_ line: [UInt8]) -> [String: JSONValue]? {
        try? JSONDecoder().decode([String: JSONValue].self, from: Data(line))
    }

    /// The member that a name is nearly: within two letters, one of the short `url`, that are added, dropped, changed or swapped.
    static func nearMiss(_ name: String) -> String? {
        let near = members.map { ($0, EditDistance.between($0, name.lowercased())) }.min { $0.1 < $1.1 }
        guard let (known, distance) = near, distance <= max(1, min(2, known.count / 3)) else { return nil }
        return known
    }

    /// What it asks; nil where that is nothing.
    /// - Throws: a sentence about what cannot be asked.
    func settings() throws(WebImageError) -> URLSettings? {
        if let sha256, Digest(hex: sha256.lowercased()) == nil {
            throw WebImageError(.invalidConfiguration, "sha256 has to be 64 hexadecimal digits")
        }
        guard URLSettings.mayHave(headers ?? [:]) else {
            throw WebImageError(
                .invalidConfiguration,
                "a URL has at most \(RequestSettings.mostHeaders) headers of its own, of \(RequestSettings.mostHeaderBytes) bytes in all"
            )
        }
        for (name, value) in headers ?? [:] where !HTTPHeader(name, value).isValid {
            throw WebImageError(
                .invalidConfiguration, "the header \(name.prefix(40)) has a character that cannot be sent")
        }
        for mirror in mirrors ?? [] where !URLLines.isURL(mirror) {
            throw WebImageError(.invalidConfiguration, "a mirror has to be a URL")
        }
        return URLSettings(
            options: try WebImageOptions(names: options ?? []), headers: headers, sha256: sha256, mirrors: mirrors ?? []
        )
    }
}

/// How the lines of a list are written.
package enum ListFormat: String, Sendable, CaseIterable {
    /// Each line as it looks: what begins with `{` is an object.
    case auto
    /// One URL a line.
    case plain
    /// One JSON object a line.
    case jsonl
    /// Tables, which become lines (``ListImport``).
    case csv, tsv
    /// A sitemap, which becomes lines.
    case sitemap

    /// Why a line is not written so; nil where it is.
    ///
    /// * `object`: the line, where it is an object that can be read.
    func objection(to line: [UInt8], _ object: JSONLine?, number: Int) -> PrefetchError? {
        let isObject = JSONLine.isOne(line)
        if self == .jsonl && !isObject {
            return PrefetchError(
                .unreadableList, "line \(number) is not a JSON object",
                hint: "--input-format auto takes lines of both kinds")
        }
        guard isObject else { return nil }
        if self == .plain {
            return PrefetchError(
                .unreadableList, "line \(number) begins as a JSON object does, and the list is to be plain",
                hint: "--input-format auto takes lines of both kinds")
        }
        for name in object?.others ?? [] {
            guard let known = JSONLine.nearMiss(name) else { continue }
            return PrefetchError(
                .unreadableList, "line \(number): there is no member '\(String(name.prefix(40)))'",
                hint: "did you mean '\(known)'? nothing was queued")
        }
        do throws(WebImageError) { _ = try object?.settings() } catch {
            return PrefetchError(
                .unreadableList, "line \(number): \(error.message)", hint: "nothing was queued; correct the line")
        }
        return nil
    }
}
