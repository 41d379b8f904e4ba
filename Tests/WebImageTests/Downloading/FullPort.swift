import Glibc

/// A port that takes no more connections: its queue is full, and the kernel drops every further SYN.
final class FullPort {
    let port: Int
    private var sockets: [Int32] = []

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        sockets = [listener]
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        func withAddress(_ body: (UnsafeMutablePointer<sockaddr>) -> Int32) -> Int32 {
            withUnsafeMutableBytes(of: &address) { body($0.baseAddress!.assumingMemoryBound(to: sockaddr.self)) }
        }
        let isOpen =
            withAddress { bind(listener, $0, length) } == 0 && withAddress { getsockname(listener, $0, &length) } == 0
            && listen(listener, 0) == 0
        port = Int(in_port_t(bigEndian: address.sin_port))
        guard isOpen else { throw PortError() }
        for _ in 0..<4 {
            let filler = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            _ = withAddress { connect(filler, $0, length) }
            sockets.append(filler)
        }
    }

    deinit { for socket in sockets { close(socket) } }

    private struct PortError: Error {}
}
