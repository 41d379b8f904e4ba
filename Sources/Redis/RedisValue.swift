/// A reply of RESP2, the protocol every supported hiredis speaks.
package enum RedisValue: Sendable, Hashable {
    case null
    /// `OK`, `PONG`, `QUEUED`.
    case status(String)
    case integer(Int)
    case bytes([UInt8])
    case array([RedisValue])
    /// Inside pipelines and arrays; a command of its own throws it.
    case error(RedisReplyError)

    /// What a number of Redis can be: counts, indices, bytes and milliseconds since 1970 (up to the year 9999), and those of the past or to come
    /// below 0, all end before 2^48. Thousands of them can be added, and one be multiplied by 1,000, within 64 bits.
    private static let plausible = -(1 << 48)...(1 << 48)

    /// The number; also of a string that is one, as Redis keeps counts in hashes and strings. Anybody may have written it: one that is less or
    /// more than a number of ours can be (`HSET … 9223372036854775807`) is the nearest that can, so that whoever calculates with it
    /// never leaves the range of `Int`.
    package var int: Int? {
        guard let number = exactInt else { return nil }
        return min(max(number, Self.plausible.lowerBound), Self.plausible.upperBound)
    }

    /// A count, a size or a time: as ``int``, and 0 where it is less than nothing.
    package var count: Int? { int.map { max(0, $0) } }

    /// The number as it is written, whatever it is; nil also for one that 64 bits do not hold. To show and to compare; for arithmetic there is
    /// ``int``.
    package var exactInt: Int? {
        switch self {
        case .integer(let number): number
        case .bytes(let bytes): bytes.count <= 20 ? Int(String(decoding: bytes, as: UTF8.self)) : nil
        case .status(let text): Int(text)
        case .null, .array, .error: nil
        }
    }

    /// Milliseconds since 1970 of the reply to TIME: seconds, and microseconds of the last one.
    package var milliseconds: Int? {
        guard let array, array.count == 2, let seconds = array[0].count, let micros = array[1].count else { return nil }
        return min(Self.plausible.upperBound, seconds * 1000 + micros / 1000)
    }

    /// The text of a status or of bytes that are UTF-8; other bytes are repaired, so compare `bytes` where that matters.
    package var string: String? {
        switch self {
        case .status(let text): text
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
        case .integer(let number): String(number)
        case .null, .array, .error: nil
        }
    }

    /// The bytes of a string or status.
    package var bytes: [UInt8]? {
        switch self {
        case .bytes(let bytes): bytes
        case .status(let text): Array(text.utf8)
        case .null, .integer, .array, .error: nil
        }
    }

    /// The elements of an array.
    package var array: [RedisValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    /// The error reply, where it is one.
    package var error: RedisReplyError? {
        if case .error(let error) = self { error } else { nil }
    }

    package var isNull: Bool { self == .null }

    /// The value, or its error thrown.
    package func get() throws(RedisError) -> RedisValue {
        if case .error(let error) = self { throw error.asError }
        return self
    }

    /// Field and value pairs as HGETALL and CONFIG GET send them, as a dictionary; nil where it is no flat list of pairs.
    package var fields: [String: RedisValue]? {
        guard let array, array.count.isMultiple(of: 2) else { return nil }
        var fields: [String: RedisValue] = [:]
        fields.reserveCapacity(array.count / 2)
        for index in stride(from: 0, to: array.count, by: 2) {
            guard let name = array[index].string else { return nil }
            fields[name] = array[index + 1]
        }
        return fields
    }
}

extension Int {
    /// A number that stands in a text others may have written: a field of several parts, a name. As ``RedisValue/int``: nil where it is none, and
    /// the nearest that can be where it is less or more.
    package init?(plausible text: some StringProtocol) {
        guard let number = RedisValue.bytes(Array(text.utf8)).int else { return nil }
        self = number
    }
}
