import Glibc

/// A port of a server that reads one request and never answers it, and refuses all other connections.
final class SingleConnectionPort {
    let port: Int
    private var listener: Int32
    private var connection: Int32 = -1

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
        self.listener = listener
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isOpen = withUnsafeMutableBytes(of: &address) { bytes in
            let address = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            return bind(listener, address, length) == 0 && listen(listener, 1) == 0
                && getsockname(listener, address, &length) == 0
        }
        port = Int(in_port_t(bigEndian: address.sin_port))
        guard isOpen else { throw PortError() }
    }

    /// Whether the one request has come. From then on connections are refused.
    func hasRequest() -> Bool {
        if connection < 0 { connection = accept(listener, nil, nil) }
        guard connection >= 0 else { return false }
        if listener >= 0 { close(listener) }
        listener = -1
        var status = pollfd(fd: connection, events: Int16(POLLIN), revents: 0)
        return poll(&status, 1, 0) == 1
    }

    deinit { for socket in [listener, connection] where socket >= 0 { close(socket) } }

    private struct PortError: Error {}
}
