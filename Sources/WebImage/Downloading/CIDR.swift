/// An address block, optionally with a port: `127.0.0.0/8`, `::1`, `10.0.0.5:8080`, `[fd00::/8]:8080`.
public struct CIDR: Sendable, Hashable, CustomStringConvertible {
    let network: IPAddress
    let prefix: Int
    /// Nil for every port.
    let port: Int?
    /// The text from which it was parsed.
    public let description: String

    /// Parses a block; nil if invalid. Bits after the prefix are ignored; without a prefix it is a single address.
    public init?(_ text: String) {
        var block = text[...]
        var port: Substring?
        if block.first == "[" {
            guard let end = block.firstIndex(of: "]") else { return nil }
            let rest = block[block.index(after: end)...]
            block = block[block.index(after: block.startIndex)..<end]
            if !rest.isEmpty {
                guard rest.first == ":" else { return nil }
                port = rest.dropFirst()
            }
        } else if let colon = block.firstIndex(of: ":"), block.lastIndex(of: ":") == colon {
            port = block[block.index(after: colon)...]
            block = block[..<colon]
        }
        let parts = block.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPAddress(parts[0]) else { return nil }
        let width = address.isIPv6 ? 128 : 32
        var prefix = width
        if parts.count == 2 {
            guard let number = Self.number(parts[1], 0...width) else { return nil }
            prefix = number
        }
        if let port {
            guard let number = Self.number(port, 1...65_535) else { return nil }
            self.port = number
        } else {
            self.port = nil
        }
        network = address
        self.prefix = prefix
        description = text
    }

    /// Digits only: `Int` would accept a sign.
    private static func number(_ text: Substring, _ range: ClosedRange<Int>) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }), let number = Int(text),
            range.contains(number)
        else { return nil }
        return number
    }

    package func contains(_ address: IPAddress) -> Bool {
        guard address.isIPv6 == network.isIPv6 else { return false }
        let bits = address.isIPv6 ? prefix : prefix + 96
        let high = bits >= 64 ? UInt64.max : bits == 0 ? 0 : ~0 << UInt64(64 - bits)
        let low = bits <= 64 ? 0 : bits == 128 ? UInt64.max : ~0 << UInt64(128 - bits)
        return address.high & high == network.high & high && address.low & low == network.low & low
    }

    package func contains(_ address: IPAddress, port: Int) -> Bool {
        (self.port == nil || self.port == port) && contains(address)
    }
}
