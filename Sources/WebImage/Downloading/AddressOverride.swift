/// A host and port for which a line of `connectTo` or `resolve` sets the address.
struct AddressOverride: Sendable, Equatable {
    let host: String?
    let port: Int?

    /// Nil for a line without an address: `-HOST:PORT` of `--resolve` removes one.
    init?(_ line: String) {
        guard !line.hasPrefix("-") else { return nil }
        let line = line.hasPrefix("+") ? line.dropFirst() : line[...]
        var rest = line
        if line.first == "[" {
            guard let end = line.firstIndex(of: "]") else { return nil }
            host = line[...end].asciiLowercased
            rest = line[line.index(after: end)...]
        } else {
            let name = line.prefix { $0 != ":" }
            host = name.isEmpty || name == "*" ? nil : name.asciiLowercased
            rest = line[name.endIndex...]
        }
        guard rest.first == ":" else { return nil }
        let number = rest.dropFirst().prefix { $0 != ":" }
        guard number.isEmpty || Int(number) != nil else { return nil }
        port = Int(number)
    }

    func matches(_ name: String, port number: Int) -> Bool {
        (host == nil || host?.hasBytes(of: name) == true) && (port == nil || port == number)
    }
}
