/// A host and port that the operator gave an address to, by a line of `connectTo` or `resolve`.
struct NamedPlace: Sendable, Equatable {
    /// nil for every host.
    let host: String?
    /// nil for every port.
    let port: Int?

    /// nil for a line that names no address: `-HOST:PORT` of `--resolve` takes one away.
    init?(_ line: String) {
        guard !line.hasPrefix("-") else { return nil }
        let line = line.hasPrefix("+") ? line.dropFirst() : line[...]
        var rest = line
        if line.first == "[" {
            guard let end = line.firstIndex(of: "]") else { return nil }
            host = line[...end].lowercased()
            rest = line[line.index(after: end)...]
        } else {
            let name = line.prefix { $0 != ":" }
            host = name.isEmpty || name == "*" ? nil : name.lowercased()
            rest = line[name.endIndex...]
        }
        guard rest.first == ":" else { return nil }
        let number = rest.dropFirst().prefix { $0 != ":" }
        guard number.isEmpty || Int(number) != nil else { return nil }
        port = Int(number)
    }

    func matches(_ request: RequestURL) -> Bool {
        (host == nil || host == request.host) && (port == nil || port == request.port)
    }
}
