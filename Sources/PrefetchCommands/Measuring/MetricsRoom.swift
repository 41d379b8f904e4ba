internal import Threading

/// The connections of one ``MetricsServer``, in the order in which they came. Where all places are taken and somebody comes, the one leaves that
/// has been silent for the longest time: clients that hold connections without asking cannot keep out one that asks.
final class MetricsRoom: Sendable {
    /// The most connections.
    private static let places = 64

    private struct Guest {
        let id: ObjectIdentifier
        let close: @Sendable () -> Void
        /// Whether its request has not come yet.
        var isSilent = true
    }

    private let guests = Locked<[Guest]>([])

    /// A connection has come.
    ///
    /// * `close`: ends it, from any thread, where it has to leave for another.
    /// - Returns: false where all places belong to others that have asked and wait for their answer.
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

    /// Its request is there: it keeps its place until it has its answer.
    func hasAsked(_ id: ObjectIdentifier) {
        guests.withLock { guests in
            if let index = guests.firstIndex(where: { $0.id == id }) { guests[index].isSilent = false }
        }
    }

    /// It is gone.
    func leave(_ id: ObjectIdentifier) {
        guests.withLock { guests in guests.removeAll { $0.id == id } }
    }
}
