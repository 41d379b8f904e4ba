internal import Threading

/// The connections of one ``MetricsServer``, oldest first. If all places are taken, a new one replaces the one that has been silent
/// longest: clients that hold connections without a request cannot keep out one that sends a request.
final class MetricsRoom: Sendable {
    private static let places = 64

    private struct Guest {
        let id: ObjectIdentifier
        let close: @Sendable () -> Void
        var isSilent = true
    }

    private let guests = Locked<[Guest]>([])

    /// Adds a connection.
    /// * `close`: closes it, from any thread, if it is replaced.
    /// - Returns: false if all connections have sent a request and wait for the response.
    func enter(_ id: ObjectIdentifier, close: @escaping @Sendable () -> Void) -> Bool {
        let (isIn, gone): (Bool, Guest?) = guests.withLock { guests in
            var gone: Guest?
            if guests.count >= Self.places {
                guard let silent = guests.firstIndex(where: \.isSilent) else { return (false, nil) }
                gone = guests.remove(at: silent)
            }
            guests.append(Guest(id: id, close: close))
            return (true, gone)
        }
        gone?.close()
        return isIn
    }

    /// Its request has arrived: it keeps its place until the response.
    func hasAsked(_ id: ObjectIdentifier) {
        guests.withLock { guests in
            if let index = guests.firstIndex(where: { $0.id == id }) { guests[index].isSilent = false }
        }
    }

    func leave(_ id: ObjectIdentifier) {
        guests.withLock { guests in guests.removeAll { $0.id == id } }
    }
}
