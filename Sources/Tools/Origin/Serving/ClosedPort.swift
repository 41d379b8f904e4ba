internal import Glibc

/// A port of the loopback interface on which nobody listens, and nobody else can for as long as this lives: the kernel refuses every
/// connection to it.
package final class ClosedPort: Sendable {
    /// Its number on 127.0.0.1.
    package let port: Int
    private let socket: Int32

    /// Takes any free port: bound, and never listened on.
    /// - Throws: ``OriginError`` where there is none.
    package init() throws(OriginError) {
        (socket, port) = try bindTo(address: "127.0.0.1", port: 0)
    }

    deinit { close(socket) }
}
