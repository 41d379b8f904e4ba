/// One step of a connection. Every behaviour of an ``OriginResponse`` is a list of steps.
enum OriginStep: Sendable {
    case send([UInt8])
    case sendFile(OriginFile)
    /// Repeats the bytes until the peer closes.
    case sendForever([UInt8])
    case wait(seconds: Double)
    /// Waits until `OriginServer.release` is called for the path.
    case hold
    /// Closes the connection with FIN.
    case close
    /// Closes the connection with RST (`SO_LINGER` 0).
    case reset
}
