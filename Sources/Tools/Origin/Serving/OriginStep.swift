/// What a connection does next. Every behaviour of an ``OriginResponse``, good or bad, is a list of these.
enum OriginStep: Sendable {
    /// Sends the bytes.
    case send([UInt8])
    /// Sends that many bytes of a file from its current start.
    case sendFile(OriginFile)
    /// Sends the bytes again and again until the peer has gone.
    case sendForever([UInt8])
    /// Does nothing for a time.
    case wait(seconds: Double)
    /// Does nothing until `OriginServer.release` names the path.
    case hold
    /// Ends the connection in order (FIN).
    case close
    /// Ends the connection with RST (`SO_LINGER` 0).
    case reset
}
