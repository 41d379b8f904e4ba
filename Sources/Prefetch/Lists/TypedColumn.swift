internal import PrefetchModel

/// A column of a table that others read, by its values.
package struct TypedColumn: Sendable, Equatable {
    /// As SQL has it.
    package enum Kind: String, Sendable {
        case text = "VARCHAR"
        case integer = "INTEGER"
        case long = "BIGINT"
        case double = "DOUBLE"
        case bool = "BOOLEAN"
        /// Base64 in a row.
        case bytes = "BLOB"
    }

    package var name: String
    package var kind: Kind

    package init(_ name: String, _ kind: Kind) { (self.name, self.kind) = (name, kind) }
}

extension TypedColumn.Kind {
    /// What a value is; nil of null, which is of every kind.
    init?(_ value: ColumnValue) {
        guard case .json(let json) = value else {
            self = .text
            return
        }
        switch json.utf8.first {
        case UInt8(ascii: "n"): return nil
        case UInt8(ascii: "t"), UInt8(ascii: "f"): self = .bool
        case UInt8(ascii: "["), UInt8(ascii: "{"): self = .text
        default: self = Int64(json) == nil ? .double : .long
        }
    }

    /// The kind of a column with values of both.
    func joined(with other: Self) -> Self {
        if self == other { return self }
        return [.long, .double].contains(self) && [.long, .double].contains(other) ? .double : .text
    }
}
