internal import Threading

/// Revocable permission to use the network. Revocation lets running transfers finish, prevents further hops and tries, and ends waiting
/// downloads with `cancelled`.
package final class DownloadPermit: Sendable {
    private let state = Locked(false)

    package init() {}

    package var isRevoked: Bool { state.withLock { $0 } }

    /// Revokes it for good. ``ImageDownloader/endRevoked()`` then ends waiting downloads.
    package func revoke() { state.withLock { $0 = true } }
}
