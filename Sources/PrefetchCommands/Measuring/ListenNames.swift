internal import Glibc

/// The Host headers accepted by a server that listens on this machine only. A web page may use its own name that resolves to 127.0.0.1, and
/// could read the responses (DNS rebinding): such a name has a dot and is none of these.
struct ListenNames: Sendable {
    private let isLoopback: Bool
    private let own: String

    /// * `address`: on any but a loopback address every name is accepted, since network clients may read it anyway.
    init(_ address: ListenAddress) {
        isLoopback = address.host == "::1" || address.host.hasPrefix("127.")
        var name = [CChar](repeating: 0, count: 256)
        own =
            gethostname(&name, name.count - 1) == 0
            ? String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self).lowercased() : ""
    }

    /// Whether a request for this host, with or without a port, is accepted: literal addresses, names without a dot, names below
    /// `localhost`, and this machine's own.
    func contains(_ host: String) -> Bool {
        guard isLoopback else { return true }
        var name = host.lowercased()
        if name.hasPrefix("[") {
            guard let end = name.firstIndex(of: "]"), [nil, ":"].contains(name[end...].dropFirst().first) else {
                return false
            }
            name = String(name[name.index(after: name.startIndex)..<end])
        } else if let colon = name.lastIndex(of: ":") {
            name = String(name[..<colon])
        }
        if name.hasSuffix(".") { name.removeLast() }
        var address = in6_addr()
        if inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1 { return true }
        guard !name.isEmpty, !name.contains(":") else { return false }
        return !name.contains(".") || name.hasSuffix(".localhost") || name == own
    }
}
