/// The address of a resolver: `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1`, `[2001:db8::1]:5353`.
package struct DNSServer: Sendable, Equatable {
    package let address: IPAddress
    package let port: Int

    /// Nil for anything else: a name would need a resolver.
    package init?(_ text: some StringProtocol) {
        let text = String(text)
        var (host, port): (Substring, Substring?) = (text[...], nil)
        if text.first == "[" {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            let rest = text[text.index(after: end)...]
            guard rest.isEmpty || rest.first == ":", host.contains(":") else { return nil }
            port = rest.isEmpty ? nil : rest.dropFirst()
        } else if let colon = text.firstIndex(of: ":"), text.lastIndex(of: ":") == colon {
            (host, port) = (text[..<colon], text[text.index(after: colon)...])
        }
        guard let address = IPAddress(host) else { return nil }
        if let port {
            guard !port.isEmpty, port.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let number = Int(port),
                (1...65_535).contains(number)
            else { return nil }
            self.port = number
        } else {
            self.port = 53
        }
        self.address = address
    }

    /// As c-ares reads it.
    package var text: String { address.isIPv6 ? "[\(address)]:\(port)" : "\(address):\(port)" }
}
