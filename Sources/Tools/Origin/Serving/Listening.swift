internal import CLinux
internal import Glibc

func listenOn(address: String, port: Int) throws(OriginError) -> (socket: Int32, port: Int) {
    let (socket, bound) = try bindTo(address: address, port: port, reusesPort: true)
    guard listen(socket, 4096) == 0, clinux_set_nonblock(socket, 1) == 0 else {
        let error = OriginError("cannot listen on \(address) port \(port)")
        close(socket)
        throw error
    }
    return (socket, bound)
}

/// A bound socket and its port. `reusesPort` allows a port whose old connections are still closing.
func bindTo(
    address: String, port: Int, reusesPort: Bool = false, kind: __socket_type = SOCK_STREAM
) throws(OriginError) -> (socket: Int32, port: Int) {
    var storage = sockaddr_storage()
    let isIPv6 = address.contains(":")
    let length = isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
    let parsed = withUnsafeMutableBytes(of: &storage) { bytes in
        if isIPv6 {
            let address6 = bytes.baseAddress!.assumingMemoryBound(to: sockaddr_in6.self)
            address6.pointee.sin6_family = sa_family_t(AF_INET6)
            address6.pointee.sin6_port = in_port_t(truncatingIfNeeded: port).bigEndian
            return inet_pton(AF_INET6, address, &address6.pointee.sin6_addr)
        }
        let address4 = bytes.baseAddress!.assumingMemoryBound(to: sockaddr_in.self)
        address4.pointee.sin_family = sa_family_t(AF_INET)
        address4.pointee.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
        return inet_pton(AF_INET, address, &address4.pointee.sin_addr)
    }
    guard parsed == 1, (0...65_535).contains(port) else {
        throw OriginError("cannot listen on \(address) port \(port)", code: EINVAL)
    }
    let bound = socket(isIPv6 ? AF_INET6 : AF_INET, Int32(kind.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard bound >= 0 else { throw OriginError("cannot make a socket") }
    var one: Int32 = reusesPort ? 1 : 0
    setsockopt(bound, SOL_SOCKET, SO_REUSEADDR, &one, 4)
    var size = socklen_t(length)
    let status = withUnsafeMutableBytes(of: &storage) { bytes in
        let address = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
        guard bind(bound, address, size) == 0 else { return Int32(-1) }
        return getsockname(bound, address, &size)
    }
    guard status == 0 else {
        let error = OriginError("cannot listen on \(address) port \(port)")
        close(bound)
        throw error
    }
    let number = withUnsafeBytes(of: storage) { bytes in
        // Both families have the port at the same offset.
        in_port_t(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: in_port_t.self))
    }
    return (bound, Int(number))
}
