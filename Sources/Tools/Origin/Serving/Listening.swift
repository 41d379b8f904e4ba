internal import Glibc
internal import Threading

func listenOn(address: String, port: Int) throws(OriginError) -> (socket: Int32, port: Int) {
    let (socket, bound) = try bindTo(address: address, port: port, reusesPort: true)
    guard listen(socket, 4096) == 0 else {
        let error = OriginError("cannot listen on \(address) port \(port)")
        close(socket)
        throw error
    }
    return (socket, bound)
}

/// A bound socket and its port.
func bindTo(
    address: String, port: Int, reusesPort: Bool = false, kind: __socket_type = SOCK_STREAM
) throws(OriginError) -> (socket: Int32, port: Int) {
    let socket = BoundSocket.open(address, port: port, kind: kind, reusesPort: reusesPort)
    guard socket >= 0 else { throw OriginError("cannot listen on \(address) port \(port)") }
    return (socket, BoundSocket.port(of: socket))
}
