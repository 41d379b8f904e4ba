internal import Redis

/// A key of a queue with a wrong type: another program has written to it.
package struct WrongKey: Sendable, Equatable {
    /// Name after the root and the colon.
    var name: String
    var type: String, wanted: String

    package func sentence(_ keys: PrefetchKeys) -> String {
        "\(keys.root):\(name) is a \(type), not a \(wanted)"
    }
}
