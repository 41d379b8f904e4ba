/// One step of a connection. Every behaviour of an ``OriginResponse`` is a list of steps.
enum OriginStep: Sendable {
    case send([UInt8])
    case sendFile(OriginFile)
    case sendForever([UInt8])
    case wait(seconds: Double)
    /// Waits until `OriginServer.release` is called for the path.
    case hold
    case close
    /// Closes the connection with RST (`SO_LINGER` 0).
    case reset
}
