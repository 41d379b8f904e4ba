internal import Threading

/// Revocable permission to use the network. After revocation a running transfer finishes, but no other hop or attempt starts, and waiting
/// downloads end with `cancelled`.
package final class DownloadPermit: Sendable {
    private let state = Locked(false)

    package init() {}

    package var isRevoked: Bool { state.withLock { $0 } }

    /// Revokes it for good. ``ImageDownloader/endRevoked()`` then ends waiting downloads.
    package func revoke() { state.withLock { $0 = true } }
}
