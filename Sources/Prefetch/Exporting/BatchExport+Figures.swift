internal import Threading
package import WebImage

extension BatchExport {
    /// What the images of one batch come to, without those of its retries: a walk over its list and a look at each image.
    /// - Throws: as ``init(_:queue:cache:listPath:)`` and ``forEachGroup(_:)``.
    package static func figures(
        of status: BatchStatus, queue: PrefetchQueue, cache: DiskCache, listPath: String? = nil
    ) async throws(PrefetchError) -> ImageFigures {
        let export = try await BatchExport(BatchChain([status]), queue: queue, cache: cache, listPath: listPath)
        let figures = Locked(ImageFigures())
        try await export.forEachGroup { lines throws(PrefetchError) in
            figures.withLock { figures in
                for line in lines { figures.add(line) }
            }
            return true
        }
        return figures.withLock { $0 }
    }
}
