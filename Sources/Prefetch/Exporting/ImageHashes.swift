internal import Threading
internal import WebImage

/// Perceptual hashes of images, made on all processors: pixels cost more than all else that a shard is made of.
struct ImageHashes: Sendable {
    private let coder = ImageCoder()
    private let pool = ThreadPool(threads: Processors.count, name: "phash")

    /// By the place of the image, without those that cannot be decoded here.
    /// - Throws: `inputOutput` where an image cannot be read.
    func of(_ entries: [CacheEntry?]) async throws(PrefetchError) -> [Int: String] {
        let results = await withTaskGroup(of: (Int, Result<String?, WebImageError>).self) { group in
            for case (let place, let entry?) in entries.enumerated() {
                group.addTask {
                    (place, await pool.run { Result { () throws(WebImageError) in try hash(entry) } })
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        var hashes: [Int: String] = [:]
        for (place, result) in results {
            do throws(WebImageError) { hashes[place] = try result.get() } catch {
                throw PrefetchError(.inputOutput, error.message)
            }
        }
        return hashes
    }

    private func hash(_ entry: CacheEntry) throws(WebImageError) -> String? {
        let bytes = try entry.bytes()
        do throws(WebImageError) {
            return try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
                try PerceptualHash(of: bytes, by: coder).hex
            }
        } catch {
            // Of the machine, not of the image.
            if error.code == .localFault || error.code == .cancelled { throw error }
            return nil
        }
    }
}
