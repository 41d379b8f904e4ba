import WebImage

/// The numbers of a completion.
struct PrefetchEnd: Equatable {
    var finished: Int
    var skipped: Int
}

extension ImagePrefetcher {
    /// Prefetches a list and waits for its completion; nil where it never came.
    func complete(
        _ urls: [String], progress: (@Sendable (_ finished: Int, _ total: Int) -> Void)? = nil
    ) async -> PrefetchEnd? {
        let (ends, continuation) = AsyncStream.makeStream(of: PrefetchEnd.self)
        prefetch(urls, progress: progress) { finished, skipped in
            continuation.yield(PrefetchEnd(finished: finished, skipped: skipped))
            continuation.finish()
        }
        return await ends.first { _ in true }
    }
}
