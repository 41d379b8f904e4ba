internal import Glibc

/// A loopback port without a listener, reserved while this object lives: the kernel refuses every connection to it.
package final class ClosedPort: Sendable {
    package let port: Int
    private let socket: Int32

    /// Binds any free port without listening.
    /// - Throws: ``OriginError`` if none is free.
    package init() throws(OriginError) {
        (socket, port) = try bindTo(address: "127.0.0.1", port: 0)
    }

    deinit { close(socket) }
}
