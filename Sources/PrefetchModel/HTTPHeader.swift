/// One header line of a request.
public struct HTTPHeader: Sendable, Hashable {
    /// A token (RFC 9110, section 5.6.2).
    public var name: String
    /// Without line breaks.
    public var value: String

    /// Creates a header line; not validated.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// Whether both are sent as the same bytes.
    public static func == (one: Self, other: Self) -> Bool {
        ByteText(one.name) == ByteText(other.name) && ByteText(one.value) == ByteText(other.value)
    }

    /// Hashes the bytes of both.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ByteText(name))
        hasher.combine(ByteText(value))
    }

    /// Whether it has this name, in any case of ASCII's letters.
    package func isNamed(_ name: String) -> Bool { self.name.isASCIICaseInsensitivelyEqual(to: name) }

    /// Whether it can be sent without injecting another header line, and leaves what is sent on the connection to curl.
    package var isValid: Bool { objection == nil }

    /// Why it cannot be sent; nil if it can.
    package var objection: String? {
        guard !isOfConnection else {
            return "the header \(name) cannot be set: it is the connection's own"
        }
        guard !name.isEmpty, name.utf8.allSatisfy(Self.isTokenByte),
            value.utf8.allSatisfy({ ($0 >= 0x20 || $0 == 9) && $0 != 0x7f })
        else { return "the header \(name.prefix(40)) has a character that cannot be sent" }
        return nil
    }

    /// Whether it is curl's to send.
    package var isOfConnection: Bool { Self.framing.contains(name.asciiLowercased) }

    /// Where a message ends, whom it is for, and what its connection does next (RFC 9110, section 7.6.1; RFC 9112, sections 3.2, 6 and 9): with
    /// another one than curl's a server takes the next request on the connection for a body, or for another host.
    private static let framing: Set<ByteText> = [
        "content-length", "transfer-encoding", "host", "connection", "te", "upgrade", "expect", "keep-alive",
        "proxy-connection", "trailer",
    ]

    /// Whether it may be sent after a redirect to another site. Others may carry credentials (`X-Api-Key`, `Private-Token`) and are
    /// dropped.
    package var isSafeAcrossSites: Bool {
        let name = name.asciiLowercased
        return Self.harmless.contains(name) || Self.safePrefixes.contains { name.startsWithBytes(of: $0) }
    }

    private static let harmless: Set<ByteText> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "dnt", "pragma",
        "priority", "range", "referer", "save-data", "upgrade-insecure-requests", "user-agent",
    ]
    /// Conditional headers and browser client hints.
    private static let safePrefixes = ["if-", "sec-ch-", "sec-fetch-", "sec-gpc"]

    package static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
