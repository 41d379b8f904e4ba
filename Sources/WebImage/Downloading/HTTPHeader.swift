/// One header line of a request.
public struct HTTPHeader: Sendable, Hashable {
    /// A token (RFC 9110, section 5.6.2).
    public var name: String
    /// No line breaks.
    public var value: String

    /// A header line.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// Whether it can be sent without becoming another line.
    package var isValid: Bool {
        !name.isEmpty && name.utf8.allSatisfy(Self.isTokenByte)
            && value.utf8.allSatisfy { ($0 >= 0x20 || $0 == 9) && $0 != 0x7f }
    }

    /// Whether it speaks for the user, and stays behind where a redirect leaves the site.
    var isCredential: Bool {
        ["authorization", "cookie", "proxy-authorization"].contains(name.lowercased())
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
