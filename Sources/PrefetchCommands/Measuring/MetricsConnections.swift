internal import Threading

/// The connections of one ``MetricsServer``, oldest first. If all places are taken, a new one replaces the one that has been silent
/// longest: clients that hold connections without a request cannot keep out one that sends a request.
final class MetricsConnections: Sendable {
    private static let places = 64

    private struct OpenConnection {
        let id: ObjectIdentifier
        let close: @Sendable () -> Void
        var isSilent = true
    }

    private let openConnections = Locked<[OpenConnection]>([])

    /// Adds a connection.
    /// * `close`: closes it, from any thread, if it is replaced.
    /// - Returns: false if all connections have sent a request and wait for the response.
    func enter(_ id: ObjectIdentifier, close: @escaping @Sendable () -> Void) -> Bool {
        let (isIn, gone): (Bool, OpenConnection?) = openConnections.withLock { openConnections in
            var gone: OpenConnection?
            if openConnections.count >= Self.places {
                guard let silent = openConnections.firstIndex(where: \.isSilent) else { return (false, nil) }
                gone = openConnections.remove(at: silent)
            }
            openConnections.append(OpenConnection(id: id, close: close))
            return (true, gone)
        }
        gone?.close()
        return isIn
    }

    /// Its request has arrived: it keeps its place until the response.
    func hasAsked(_ id: ObjectIdentifier) {
        openConnections.withLock { openConnections in
            if let index = openConnections.firstIndex(where: { $0.id == id }) {
                openConnections[index].isSilent = false
            }
        }
    }

    func leave(_ id: ObjectIdentifier) {
        openConnections.withLock { openConnections in openConnections.removeAll { $0.id == id } }
    }
}
