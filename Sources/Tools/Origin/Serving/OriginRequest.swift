package struct OriginRequest: Sendable {
    package var method: String
    /// The request target as received: path and query, not decoded.
    package var path: String
    /// As received, in order.
    package var headers: [(name: String, value: String)]
    /// Number of the connection, from 1 in the order of acceptance.
    package var connection: Int
    /// How often this path has been requested, including this request.
    package var number: Int
    package var time: Double

    /// Case-insensitive; the first match.
    package func header(_ name: String) -> String? {
        let name = name.lowercased()
        return headers.first { $0.name.lowercased() == name }?.value
    }

    /// Parses a request head without its final blank line; nil if it is not HTTP/1.
    static func parse(_ head: ArraySlice<UInt8>) -> OriginRequest? {
        let lines = head.split(separator: 10)
        guard let first = lines.first else { return nil }
        let words = first.split(separator: 32)
        guard words.count == 3, words[2].starts(with: Array("HTTP/1.".utf8)) else { return nil }
        var request = OriginRequest(
            method: String(decoding: words[0], as: UTF8.self), path: String(decoding: words[1], as: UTF8.self),
            headers: [], connection: 0, number: 0, time: 0)
        request.headers.reserveCapacity(lines.count - 1)
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: 58) else { continue }
            let value = line[(colon + 1)...].drop { $0 == 32 || $0 == 9 }
            let end = value.lastIndex { $0 != 13 && $0 != 32 } ?? value.startIndex - 1
            request.headers.append(
                (
                    String(decoding: line[..<colon], as: UTF8.self),
                    end < value.startIndex ? "" : String(decoding: value[...end], as: UTF8.self)
                ))
        }
        return request
    }
}
