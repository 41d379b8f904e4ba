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

extension ImageDownloader {
    /// Ends every download that has no transfer under way and whose callers have all lost their permit.
    package func endRevoked() {
        for operation in Array(operations.values) where operation.handle == nil && operation.isRevoked {
            complete(operation, .failure(.downloadCancelled))
        }
    }
}

extension DownloadOperation {
    /// Whether nobody who waits for it may begin anything any more.
    var isRevoked: Bool { waiters.allSatisfy { $0.permit?.isRevoked == true } }
}
