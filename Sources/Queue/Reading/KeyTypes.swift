internal import Redis

/// A key of a queue that is of another type than the queue's: somebody else has written to it.
package struct WrongKey: Sendable, Equatable {
    /// What stands behind the root of the keys and a colon.
    var name: String
    /// What it is, and what it must be.
    var type: String, wanted: String

    package func sentence(_ keys: PrefetchKeys) -> String {
        "\(keys.root):\(name) is a \(type), not a \(wanted)"
    }
}
