internal import FoundationEssentials

/// Settings that a line of a list has for its URL alone. A reference type, so that entries of plain lists, which have none, stay small.
package final class URLSettings: Sendable, Equatable {
    /// In addition to the batch's.
    package let options: WebImageOptions
    package let headers: [HTTPHeader]
    package let sha256: String?
    package let mirrors: [String]
    /// Rules that replace those of the batch.
    package let rules: ImageRules
    /// Canonical JSON on one line.
    package let text: String

    /// The longest ``text``, in bytes: the longest line of a list, with room for the encoding.
    private static let longest = 128 << 10

    /// * `text`: a ``text``; nil if it is invalid, or exceeds the limits for a line of a list.
    package init?(text: String) {
        guard text.utf8.count <= Self.longest,
            let fields = try? JSONDecoder().decode(Fields.self, from: Data(text.utf8)),
            Self.mayHave(fields.headers ?? [:])
        else { return nil }
        options = fields.options ?? []
        headers = (fields.headers ?? [:]).sorted { $0.key < $1.key }.map { HTTPHeader($0.key, $0.value) }
        sha256 = fields.sha256
        mirrors = fields.mirrors ?? []
        rules = ImageRules(words: fields.rules ?? [:])
        self.text = text
    }

    /// Nil if nothing is set.
    package init?(
        options: WebImageOptions, headers named: [String: String]?, sha256: String?, mirrors: [String],
        rules: ImageRules = ImageRules()
    ) {
        self.options = options
        headers = (named ?? [:]).sorted { $0.key < $1.key }.map { HTTPHeader($0.key, $0.value) }
        self.sha256 = sha256?.lowercased()
        self.mirrors = mirrors
        self.rules = rules
        if options.isEmpty && headers.isEmpty && sha256 == nil && mirrors.isEmpty && rules.isEmpty { return nil }
        let fields = Fields(
            options: options.isEmpty ? nil : options, headers: named, sha256: self.sha256,
            mirrors: mirrors.isEmpty ? nil : mirrors, rules: rules.isEmpty ? nil : rules.words)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(fields) else { return nil }
        text = String(decoding: data, as: UTF8.self)
    }

    package static func mayHave(_ headers: [String: String]) -> Bool {
        headers.count <= RequestSettings.maxHeaders
            && headers.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count } <= RequestSettings.mostHeaderBytes
    }

    private struct Fields: Codable {
        var options: WebImageOptions?
        var headers: [String: String]?
        var sha256: String?
        var mirrors: [String]?
        var rules: [String: [String]]?
    }

    /// What decides besides the URL which bytes arrive, as one line of JSON: its headers and mirrors; nil: nothing does.
    package var source: String? {
        guard !headers.isEmpty || !mirrors.isEmpty else { return nil }
        let named = Dictionary(headers.map { ($0.name, $0.value) }) { first, _ in first }
        return URLSettings(options: [], headers: headers.isEmpty ? nil : named, sha256: nil, mirrors: mirrors)?.text
    }

    package static func == (lhs: URLSettings, rhs: URLSettings) -> Bool { lhs.text == rhs.text }

    /// Whether a hit needs more than its presence in the cache.
    package var revalidatesHits: Bool { sha256 != nil || options.revalidatesHits || !rules.isEmpty }
}
