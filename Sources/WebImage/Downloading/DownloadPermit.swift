internal import Threading

/// Leave to ask the network, which can be taken back: a transfer that has begun goes on to its end, and nothing else begins under it,
/// no other hop and no other try either. What waits ends with `cancelled`.
package final class DownloadPermit: Sendable {
    private let state = Locked(false)

    package init() {}

    /// Whether it was taken back.
    package var isRevoked: Bool { state.withLock { $0 } }

    /// Takes it back, for good. ``ImageDownloader/endRevoked()`` then ends what waits under it.
    package func revoke() { state.withLock { $0 = true } }
}
