/// The few elements that are read of a store's XML: each is found by its name, whatever stands around it.
struct S3Answer {
    private let text: String

    init(_ bytes: [UInt8]) { text = String(decoding: bytes, as: UTF8.self) }

    /// The text of the first element of a name, with the five entities of XML; nil if there is none.
    func value(_ name: String) -> String? { Self.value(name, in: text[...]) }

    /// The contents of all elements of a name, which have elements in them.
    func elements(_ name: String) -> [S3Answer] {
        var found: [S3Answer] = []
        var rest = text[...]
        while let start = rest.firstRange(of: "<\(name)>"),
            let end = rest[start.upperBound...].firstRange(of: "</\(name)>")
        {
            found.append(S3Answer(rest[start.upperBound..<end.lowerBound]))
            rest = rest[end.upperBound...]
        }
        return found
    }

    private init(_ text: Substring) { self.text = String(text) }

    private static func value(_ name: String, in text: Substring) -> String? {
        guard let start = text.firstRange(of: "<\(name)>"),
            let end = text[start.upperBound...].firstRange(of: "</\(name)>")
        else { return nil }
        var value = String(text[start.upperBound..<end.lowerBound])
        for (entity, character) in [
            ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#34;", "\""), ("&apos;", "'"), ("&#39;", "'"),
            ("&amp;", "&"),
        ] {
            value = value.replacing(entity, with: character)
        }
        return value
    }
}
