internal import ArgumentParser
internal import Glibc

/// `127.0.0.1:9464`, `[::1]:9464`, or a port of this machine alone.
struct ListenAddress: ExpressibleByArgument, Sendable, Equatable {
    var host: String
    var port: Int

    init(host: String, port: Int) { (self.host, self.port) = (host, port) }

    init?(argument: String) {
        guard let colon = argument.lastIndex(of: ":") else {
            guard let port = Int(argument), (0...65_535).contains(port) else { return nil }
            (host, self.port) = ("127.0.0.1", port)
            return
        }
        guard let port = Int(argument[argument.index(after: colon)...]), (0...65_535).contains(port) else { return nil }
        var host = String(argument[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        if host == "localhost" { host = "127.0.0.1" }
        var address = in6_addr()
        guard inet_pton(host.contains(":") ? AF_INET6 : AF_INET, host, &address) == 1 else { return nil }
        (self.host, self.port) = (host, port)
    }

    /// As in a URL.
    var text: String { (host.contains(":") ? "[\(host)]" : host) + ":\(port)" }
}
