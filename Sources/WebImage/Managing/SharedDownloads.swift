internal import Threading

/// The downloads of a manager's loads, by image: who waits for one is asked and told as if it made the request itself (SDWebImageDownloader's
/// `URLCallbacks`).
final class SharedDownloads: Sendable {
    /// A load that waits for another one of the same image.
    final class Follower: Sendable {
        private struct State {
            /// Whether a download has begun for which it was asked, and has brought the image.
            var isAsked = false, isServed = false
            var refusal: WebImageError?
        }

        fileprivate let progress: (@Sendable (Int, Int) -> Void)?
        private let willUseNetwork: (@Sendable () throws(WebImageError) -> Void)?
        private let state = Locked(State())

        fileprivate init(_ request: LoadRequest) {
            progress = request.progress
            willUseNetwork = request.willUseNetwork
        }

        /// Whether the image that it finds now was downloaded while it waited.
        var isServed: Bool { state.withLock { $0.isServed } }

        /// Why it may not have the image that was downloaded meanwhile.
        var refusal: WebImageError? { state.withLock { $0.refusal } }

        /// Asks it, once per download that it waits for.
        fileprivate func ask() {
            let isFirst = state.withLock { state in
                guard !state.isAsked, state.refusal == nil else { return false }
                // Before the answer: the download may end meanwhile.
                state.isAsked = true
                return true
            }
            guard isFirst else { return }
            do throws(WebImageError) { try willUseNetwork?() } catch {
                let refusal = error
                state.withLock { $0.refusal = refusal }
            }
        }

        /// * `isServed`: whether the download has brought the image. If not, it asks for its own.
        fileprivate func didEnd(isServed: Bool) {
            state.withLock { state in
                if state.isAsked { state.isServed = isServed }
                state.isAsked = false
            }
        }
    }

    private struct Image {
        var followers: [Follower] = []
        var isDownloading = false
    }

    private let images = Locked<[CacheKey: Image]>([:])

    /// Acquires the transfer lock of an image. A load of a manager that waits for it follows the download of the one that has it.
    /// - Throws: why it may not have that download, too; otherwise as the lock.
    nonisolated(nonsending) func transfer(
        of key: CacheKey, _ request: LoadRequest, _ lock: TransferLock
    ) async throws(WebImageError) -> (Transfer, Follower?) {
        if let transfer = try lock.tryAcquire(key) { return (transfer, nil) }
        guard request.sharesDownload else { return (try await lock.acquire(key), nil) }
        let follower = join(key, request)
        defer { leave(key, follower) }
        if let refusal = follower.refusal { throw refusal }
        let transfer = try await lock.acquire(key)
        if let refusal = follower.refusal {
            transfer.release()
            throw refusal
        }
        return (transfer, follower)
    }

    /// Downloads for all loads that wait for the image.
    nonisolated(nonsending) func lead(
        _ key: CacheKey, _ request: LoadRequest,
        _ download: nonisolated(nonsending) (LoadRequest) async throws(WebImageError) -> LoadResult
    ) async throws(WebImageError) -> LoadResult {
        var request = request
        request.progress = begin(key, request)
        do throws(WebImageError) {
            let result = try await download(request)
            didEnd(key, isServed: true)
            return result
        } catch {
            didEnd(key, isServed: false)
            throw error
        }
    }

    private func join(_ key: CacheKey, _ request: LoadRequest) -> Follower {
        let follower = Follower(request)
        let isDownloading = images.withLock { images in
            images[key, default: Image()].followers.append(follower)
            return images[key]?.isDownloading == true
        }
        if isDownloading { follower.ask() }
        return follower
    }

    private func leave(_ key: CacheKey, _ follower: Follower) {
        images.withLock { images in
            images[key]?.followers.removeAll { $0 === follower }
            Self.dropIfUnused(key, &images)
        }
    }

    /// - Returns: who receives the progress: the load, and those that wait.
    private func begin(_ key: CacheKey, _ request: LoadRequest) -> @Sendable (Int, Int) -> Void {
        let waiting = images.withLock { images in
            images[key, default: Image()].isDownloading = true
            return images[key]?.followers ?? []
        }
        for follower in waiting { follower.ask() }
        return { [self, progress = request.progress] received, expected in
            progress?(received, expected)
            for follower in images.withLock({ $0[key]?.followers ?? [] }) where follower.refusal == nil {
                follower.progress?(received, expected)
            }
        }
    }

    /// * `isServed`: whether it has brought the image.
    private func didEnd(_ key: CacheKey, isServed: Bool) {
        let waiting = images.withLock { images in
            images[key]?.isDownloading = false
            defer { Self.dropIfUnused(key, &images) }
            return images[key]?.followers ?? []
        }
        for follower in waiting { follower.didEnd(isServed: isServed) }
    }

    private static func dropIfUnused(_ key: CacheKey, _ images: inout [CacheKey: Image]) {
        if let image = images[key], image.followers.isEmpty, !image.isDownloading { images[key] = nil }
    }
}
