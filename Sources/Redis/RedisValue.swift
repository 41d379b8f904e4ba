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

    /// The number; also of a string that is one, as Redis keeps counts in hashes and strings.
    package var int: Int? {
        switch self {
        case .integer(let number): number
        case .bytes, .status: string.flatMap { Int($0) }
        case .null, .array, .error: nil
        }
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
