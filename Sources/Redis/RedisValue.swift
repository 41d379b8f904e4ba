/// A reply in RESP2, the protocol that every supported hiredis speaks.
package enum RedisValue: Sendable, Hashable {
    case null
    case status(String)
    case integer(Int)
    case bytes([UInt8])
    case array([RedisValue])
    /// Inside pipelines and arrays; a single command throws it.
    case error(RedisReplyError)

    /// Range of plausible numbers: counts, indices, bytes and milliseconds since 1970 (up to the year 9999), also negative, are below 2^48.
    /// Thousands of them can be added, and one multiplied by 1,000, within 64 bits.
    private static let plausible = -(1 << 48)...(1 << 48)

    /// The number, also if it is a string, as Redis stores counts in hashes and strings. Values written by others (`HSET …
    /// 9223372036854775807`) are clamped to the plausible range, so that arithmetic cannot overflow.
    package var int: Int? {
        guard let number = exactInt else { return nil }
        return min(max(number, Self.plausible.lowerBound), Self.plausible.upperBound)
    }

    /// ``int``, with negative values clamped to 0: for counts, sizes and times.
    package var count: Int? { int.map { max(0, $0) } }

    /// The number unclamped; nil if it does not fit 64 bits. For display and comparison; use ``int`` for arithmetic.
    package var exactInt: Int? {
        switch self {
        case .integer(let number): number
        case .bytes(let bytes): bytes.count <= 20 ? Int(String(decoding: bytes, as: UTF8.self)) : nil
        case .status(let text): Int(text)
        case .null, .array, .error: nil
        }
    }

    /// The reply to TIME (seconds, microseconds) in milliseconds since 1970.
    package var milliseconds: Int? {
        guard let array, array.count == 2, let seconds = array[0].count, let micros = array[1].count else { return nil }
        return min(Self.plausible.upperBound, seconds * 1000 + micros / 1000)
    }

    /// The text of a status or of UTF-8 bytes; invalid bytes are repaired, so compare `bytes` if that matters.
    package var string: String? {
        switch self {
        case .status(let text): text
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
        case .integer(let number): String(number)
        case .null, .array, .error: nil
        }
    }

    package var bytes: [UInt8]? {
        switch self {
        case .bytes(let bytes): bytes
        case .status(let text): Array(text.utf8)
        case .null, .integer, .array, .error: nil
        }
    }

    package var array: [RedisValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    package var error: RedisReplyError? {
        if case .error(let error) = self { error } else { nil }
    }

    package var isNull: Bool { self == .null }

    package func get() throws(RedisError) -> RedisValue {
        if case .error(let error) = self { throw error.asError }
        return self
    }

    /// Field and value pairs of HGETALL or CONFIG GET; nil if it is not a flat list of pairs. For hashes whose fields are hosts or other
    /// texts from outside, two of which may be one key of a dictionary.
    package var pairs: [(name: String, value: RedisValue)]? {
        guard let array, array.count.isMultiple(of: 2) else { return nil }
        var pairs: [(name: String, value: RedisValue)] = []
        pairs.reserveCapacity(array.count / 2)
        for index in stride(from: 0, to: array.count, by: 2) {
            guard let name = array[index].string else { return nil }
            pairs.append((name, array[index + 1]))
        }
        return pairs
    }

    /// The ``pairs`` of a hash whose fields this project names, in ASCII.
    package var fields: [String: RedisValue]? {
        pairs.map { Dictionary($0.map { ($0.name, $0.value) }) { _, last in last } }
    }
}

extension Int {
    /// Parses a number from text that others may have written; clamped as in ``RedisValue/int``, nil on failure.
    package init?(plausible text: some StringProtocol) {
        guard let number = RedisValue.bytes(Array(text.utf8)).int else { return nil }
        self = number
    }
}
