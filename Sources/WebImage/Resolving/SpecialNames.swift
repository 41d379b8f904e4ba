/// Names that no resolver is asked for.
enum SpecialNames {
    private static let loopback = ["::1", "127.0.0.1"].compactMap { IPAddress($0) }

    /// What is known of a name without a query; nil: nothing.
    /// * `name`: in lower case, without a final dot.
    static func reply(for name: String) -> NameReply? {
        // RFC 6761, sections 6.3 and 6.4.
        if isIn("localhost", name) { return .addresses(loopback, lifetime: .infinity) }
        if isIn("invalid", name) || !isName(name) { return .noName }
        // A numeral with a final dot, which curl leaves as it is.
        guard let first = name.utf8.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else { return nil }
        return IPAddress(name).map { .addresses([$0], lifetime: .infinity) }
    }

    private static func isIn(_ domain: String, _ name: String) -> Bool {
        guard name.endsWithBytes(of: domain) else { return false }
        return name.utf8.count == domain.utf8.count || name.utf8.dropLast(domain.utf8.count).last == UInt8(ascii: ".")
    }

    /// Whether DNS can ask for it: labels of 1 to 63 bytes, 253 in all (RFC 1035, section 2.3.4).
    private static func isName(_ name: String) -> Bool {
        var name = name
        return name.withUTF8 { bytes in
            guard (1...253).contains(bytes.count) else { return false }
            var label = 0
            for byte in bytes {
                guard byte != UInt8(ascii: ".") else {
                    if label == 0 { return false }
                    label = 0
                    continue
                }
                label += 1
                if label > 63 { return false }
            }
            return label > 0
        }
    }
}
