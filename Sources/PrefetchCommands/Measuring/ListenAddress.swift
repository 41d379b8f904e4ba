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

    /// As it stands in a URL.
    var text: String { (host.contains(":") ? "[\(host)]" : host) + ":\(port)" }

    /// A listening socket, and the port it has.
    /// - Returns: nil with `errno`.
    func listen() -> (socket: Int32, port: Int)? {
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_PASSIVE
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &found) == 0, let found else { return nil }
        defer { freeaddrinfo(found) }
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let bound = socket(found.pointee.ai_family, type, 0)
        guard bound >= 0 else { return nil }
        var one: Int32 = 1
        setsockopt(bound, SOL_SOCKET, SO_REUSEADDR, &one, 4)
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let isBound = withUnsafeMutableBytes(of: &storage) { bytes in
            let address = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self)
            return bind(bound, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0 && Glibc.listen(bound, 64) == 0
                && getsockname(bound, address, &size) == 0
        }
        guard isBound else {
            let code = errno
            close(bound)
            errno = code
            return nil
        }
        // The port is at the same place in both families.
        let port = withUnsafeBytes(of: storage) {
            in_port_t(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: in_port_t.self))
        }
        return (bound, Int(port))
    }
}
