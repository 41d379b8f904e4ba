internal import FoundationEssentials
internal import WebImage

/// One line of a list of JSON objects: `{"url":"https://…","options":["refreshCached"],"headers":{"Referer":"…"},"sha256":"…",
/// "mirrors":["https://…"]}`. All but the URL may be left out; other members are passed over.
struct JSONLine: Decodable {
    var url: String?
    var options: [String]?
    var headers: [String: String]?
    var sha256: String?
    var mirrors: [String]?
    /// What a table had beside the URL; it is handed on to manifests and asks nothing.
    var columns: [String: String]?

    /// Whether a line can be one: no URL begins so.
    static func isOne(_ line: [UInt8]) -> Bool { line.first == UInt8(ascii: "{") }

    /// nil where a line is no such object.
    init?(_ line: [UInt8]) {
        guard let read = try? JSONDecoder().decode(JSONLine.self, from: Data(line)), read.url != nil else { return nil }
        self = read
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
                "a URL has at most \(URLSettings.mostHeaders) headers of its own, of \(URLSettings.mostHeaderBytes) bytes in all"
            )
        }
        for (name, value) in headers ?? [:] where !HTTPHeader(name, value).isValid {
            throw WebImageError(
                .invalidConfiguration, "the header \(name.prefix(40)) has a character that cannot be sent")
        }
        for mirror in mirrors ?? [] where !URLLines.isURL(mirror) {
            throw WebImageError(.invalidConfiguration, "a mirror has to be a URL")
        }
        return try URLSettings(self)
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
    func objection(to line: [UInt8], number: Int) -> PrefetchError? {
        let isObject = JSONLine.isOne(line)
        if self == .jsonl && !isObject {
            return PrefetchError(
                .unreadableList, "line \(number) is no JSON object",
                hint: "--input-format auto takes lines of both kinds")
        }
        guard isObject else { return nil }
        if self == .plain {
            return PrefetchError(
                .unreadableList, "line \(number) begins as a JSON object does, and the list is to be plain",
                hint: "--input-format auto takes lines of both kinds")
        }
        do throws(WebImageError) { _ = try JSONLine(line)?.settings() } catch {
            return PrefetchError(
                .unreadableList, "line \(number): \(error.message)", hint: "nothing was queued; correct the line")
        }
        return nil
    }
}
