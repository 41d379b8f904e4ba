internal import Glibc

/// A text that is equal, ordered and hashed by its UTF-8. `String` takes canonically equivalent texts for one (UAX #15): `é` in one code
/// point and in two, the Kelvin sign and `K`. URLs, hosts, and the names of headers, columns and files are bytes, so they are keys of
/// dictionaries and members of sets only as this. It shares the storage of its string: making one allocates nothing.
public struct ByteText: Sendable, Hashable, Comparable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The text.
    public let text: String

    /// Takes a text.
    @inlinable public init(_ text: String) { self.text = text }

    /// Takes a text.
    public init(stringLiteral text: String) { self.text = text }

    /// The text.
    public var description: String { text }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) {
        text.utf8.span.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    /// Whether the bytes are the same.
    public static func == (one: Self, other: Self) -> Bool {
        // The same two words are the same storage and length, or the same small text: most look-ups are with the text that was stored.
        if unsafeBitCast(one.text, to: Words.self) == unsafeBitCast(other.text, to: Words.self) { return true }
        return one.text.utf8.count == other.text.utf8.count && order(one.text, other.text) == 0
    }

    private typealias Words = (UInt, UInt)

    /// Whether the bytes come before the others.
    public static func < (one: Self, other: Self) -> Bool { order(one.text, other.text) < 0 }

    private static func order(_ one: String, _ other: String) -> Int {
        one.utf8.span.withUnsafeBytes { one in
            other.utf8.span.withUnsafeBytes { other in
                let shared = min(one.count, other.count)
                // An empty span has no address.
                guard shared > 0, let first = one.baseAddress, let second = other.baseAddress else {
                    return one.count - other.count
                }
                let difference = memcmp(first, second, shared)
                return difference == 0 ? one.count - other.count : Int(difference)
            }
        }
    }
}

extension StringProtocol {
    /// Whether both are the same bytes, which `==` does not say.
    @inlinable package func hasBytes(of other: some StringProtocol) -> Bool {
        utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
    }

    /// Whether it begins with these bytes: `hasPrefix` compares characters.
    @inlinable package func startsWithBytes(of other: some StringProtocol) -> Bool { utf8.starts(with: other.utf8) }

    /// Whether it ends with these bytes.
    @inlinable package func endsWithBytes(of other: some StringProtocol) -> Bool {
        // `starts(with:)` on the reversed views would make two arrays of them.
        utf8.count >= other.utf8.count && utf8.suffix(other.utf8.count).elementsEqual(other.utf8)
    }

    /// A to Z in lower case, as protocols compare names; `lowercased()` makes the Kelvin sign a k.
    @inlinable package var asciiLowercased: String {
        guard utf8.contains(where: { $0 >= 0x41 && $0 <= 0x5A }) else { return String(self) }
        return String(decoding: utf8.map { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// Whether both are the same in ASCII's lower case.
    @inlinable package func isASCIICaseInsensitivelyEqual(to other: some StringProtocol) -> Bool {
        func lower(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte }
        return utf8.count == other.utf8.count && zip(utf8, other.utf8).allSatisfy { lower($0) == lower($1) }
    }
}

extension Substring {
    /// Its parts between these bytes of ASCII. `split` on characters leaves a separator that a combining mark follows, and the line break of
    /// two bytes.
    @inlinable package func split(
        atByte separator: Unicode.Scalar, maxSplits: Int = .max, omittingEmptySubsequences: Bool = true
    ) -> [Substring] {
        utf8.split(
            separator: UInt8(ascii: separator), maxSplits: maxSplits,
            omittingEmptySubsequences: omittingEmptySubsequences
        ).map { Substring($0) }
    }
}

extension String {
    /// As that of a substring.
    @inlinable package func split(
        atByte separator: Unicode.Scalar, maxSplits: Int = .max, omittingEmptySubsequences: Bool = true
    ) -> [Substring] {
        self[...].split(
            atByte: separator, maxSplits: maxSplits, omittingEmptySubsequences: omittingEmptySubsequences)
    }
}

// Inlined, so that they are specialised for the values where they are used.
extension Dictionary where Key == ByteText {
    @inlinable package subscript(_ text: String) -> Value? {
        get { self[ByteText(text)] }
        _modify { yield &self[ByteText(text)] }
    }

    @inlinable package subscript(_ text: String, default value: @autoclosure () -> Value) -> Value {
        get { self[ByteText(text), default: value()] }
        _modify { yield &self[ByteText(text), default: value()] }
    }

    @discardableResult @inlinable
    package mutating func removeValue(forKey text: String) -> Value? { removeValue(forKey: ByteText(text)) }

    @discardableResult @inlinable
    package mutating func updateValue(_ value: Value, forKey text: String) -> Value? {
        updateValue(value, forKey: ByteText(text))
    }
}

extension Set<ByteText> {
    @inlinable package func contains(_ text: String) -> Bool { contains(ByteText(text)) }

    @discardableResult @inlinable
    package mutating func insert(_ text: String) -> (inserted: Bool, memberAfterInsert: ByteText) {
        insert(ByteText(text))
    }

    @discardableResult @inlinable
    package mutating func remove(_ text: String) -> ByteText? { remove(ByteText(text)) }

    @inlinable package init(texts: some Sequence<String>) { self.init(texts.lazy.map { ByteText($0) }) }
}
