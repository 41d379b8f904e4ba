package import Glibc

/// Sockets of servers.
package enum BoundSocket {
    /// Binds a socket that does not block, and does not listen yet.
    /// * `address`: of IPv4 or IPv6.
    /// * `port`: 0 = any that is free.
    /// * `reusesPort`: takes a port whose old connections are still closing.
    /// - Returns: its descriptor, or -1 with `errno` set.
    package static func open(
        _ address: String, port: Int, kind: __socket_type = SOCK_STREAM, reusesPort: Bool
    ) -> Int32 {
        var (hints, found) = (addrinfo(), UnsafeMutablePointer<addrinfo>?.none)
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        hints.ai_socktype = Int32(kind.rawValue)
        guard (0...65_535).contains(port), getaddrinfo(address, String(port), &hints, &found) == 0,
            let place = found?.pointee
        else {
            errno = EINVAL
            return -1
        }
        defer { freeaddrinfo(found) }
        let flags = Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let socket = Glibc.socket(place.ai_family, place.ai_socktype | flags, 0)
        guard socket >= 0 else { return -1 }
        var reuses: Int32 = reusesPort ? 1 : 0
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &reuses, 4)
        guard bind(socket, place.ai_addr, place.ai_addrlen) == 0 else {
            let why = errno
            close(socket)
            errno = why
            return -1
        }
        return socket
    }

    /// The port of a socket of ``open(_:port:kind:reusesPort:)``.
    package static func port(of socket: Int32) -> Int {
        var (address, size) = (sockaddr_storage(), socklen_t(MemoryLayout<sockaddr_storage>.size))
        return withUnsafeMutableBytes(of: &address) { bytes in
            getsockname(socket, bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), &size)
            // Both families have it at the same offset.
            return Int(in_port_t(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: in_port_t.self)))
        }
    }
}
