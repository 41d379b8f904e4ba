internal import FoundationEssentials

/// What one line of a list asks for its URL alone. A reference, so that the entries of plain lists, which have none, stay small.
package final class URLSettings: Sendable, Equatable {
    /// What its load does differently, beside what the batch asks.
    package let options: WebImageOptions
    /// Sent with its request.
    package let headers: [HTTPHeader]
    /// The digest its bytes have to have, hex.
    package let sha256: String?
    /// Where else the image is.
    package let mirrors: [String]
    /// All of it in one line of JSON, the same for the same settings.
    package let text: String

    /// The longest ``text``, in bytes: what a line of a list can ask for, with room for how it is written.
    private static let longest = 128 << 10

    /// * `text`: as ``text`` of another; nil where it is none, or asks for more than a line of a list may.
    package init?(text: String) {
        guard text.utf8.count <= Self.longest,
            let fields = try? JSONDecoder().decode(Fields.self, from: Data(text.utf8)),
            Self.mayHave(fields.headers ?? [:])
        else { return nil }
        options = fields.options ?? []
        headers = (fields.headers ?? [:]).sorted { $0.key < $1.key }.map { HTTPHeader($0.key, $0.value) }
        sha256 = fields.sha256
        mirrors = fields.mirrors ?? []
        self.text = text
    }

    /// nil where nothing is asked.
    package init?(options: WebImageOptions, headers named: [String: String]?, sha256: String?, mirrors: [String]) {
        self.options = options
        headers = (named ?? [:]).sorted { $0.key < $1.key }.map { HTTPHeader($0.key, $0.value) }
        self.sha256 = sha256?.lowercased()
        self.mirrors = mirrors
        if options.isEmpty && headers.isEmpty && sha256 == nil && mirrors.isEmpty { return nil }
        let fields = Fields(
            options: options.isEmpty ? nil : options, headers: named, sha256: self.sha256,
            mirrors: mirrors.isEmpty ? nil : mirrors)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(fields) else { return nil }
        text = String(decoding: data, as: UTF8.self)
    }

    /// Whether a URL may have these headers of its own.
    package static func mayHave(_ headers: [String: String]) -> Bool {
        headers.count <= RequestSettings.mostHeaders
            && headers.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count } <= RequestSettings.mostHeaderBytes
    }

    private struct Fields: Codable {
        var options: WebImageOptions?
        var headers: [String: String]?
        var sha256: String?
        var mirrors: [String]?
    }

    package static func == (lhs: URLSettings, rhs: URLSettings) -> Bool { lhs.text == rhs.text }

    /// Whether a hit is more than a look at the cache.
    package var questionsHits: Bool { sha256 != nil || options.questionsHits }
}
