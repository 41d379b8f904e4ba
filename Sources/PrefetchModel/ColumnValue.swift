/// What a list says beside a URL under one name: a text, or another value of JSON.
package enum ColumnValue: Sendable, Equatable {
    case text(String)
    /// A number, `true`, `false`, `null`, an array or an object, as it is written.
    case json(String)

    package static let null = ColumnValue.json("null")

    /// For a cell or a file of text: a text as it is, null as empty, any other value as JSON.
    package var text: String {
        switch self {
        case .text(let text): text
        case .json(let json): json.utf8.elementsEqual("null".utf8) ? "" : json
        }
    }
}
