/// A loaded image by reference: each of the asynchronous functions that return it would have room for all its fields on the heap, as long
/// as it waits.
package final class LoadResult: Sendable {
    package let image: LoadedImage

    init(_ image: LoadedImage) { self.image = image }

    /// The same image for a load that waited for another one: what that downloaded is from no cache.
    func served(to follower: SharedDownloads.Follower?) -> LoadResult {
        guard let follower, follower.isServed else { return self }
        var image = image
        image.cacheType = .none
        return LoadResult(image)
    }

    /// The same image, which was not refreshed because that was refused.
    func kept(_ refusal: WebImageError) -> LoadResult {
        var image = image
        image.details.append("not refreshed: \(refusal.message)")
        return LoadResult(image)
    }

    /// The same image, loaded from a mirror after other tries.
    func fromMirror(_ mirror: String, triesBefore: Int) -> LoadResult {
        var image = image
        image.tries += triesBefore
        image.details.append("from the mirror \(mirror)")
        return LoadResult(image)
    }
}

/// An image on disk, by reference for the same reason.
final class PresentImage: Sendable {
    let found: FoundImage
    /// What a conditional request says; nil: the request is not conditional.
    let known: HTTPValidators?

    init(_ found: FoundImage, _ known: HTTPValidators?) {
        self.found = found
        self.known = known
    }
}

extension LoadedImage {
    /// As a request has brought or confirmed it.
    func requested(by download: DownloadedImage) -> LoadedImage {
        var image = self
        (image.httpStatus, image.tries, image.timing) = (download.status, download.tries, download.timing)
        return image
    }

    /// * `bytes`: of an image without a file, for a request that uses memory.
    init(
        _ request: LoadRequest, _ path: String?, _ info: ImageInfo, _ size: Int, _ digest: Digest?,
        bytes: [UInt8]? = nil, cacheType: ImageCacheType, outcome: PrefetchOutcome
    ) {
        self.init(
            url: request.url, key: request.key, path: path, info: info, byteCount: size, sha256: digest?.bytes,
            cacheType: cacheType, outcome: outcome, httpStatus: nil, tries: 0, details: info.warnings)
        guard request.usesMemory else { return }
        self.bytes = bytes
        decodeOptions.scale = ImageScale.factor(forKey: request.key)
        if request.options.contains(.scaleDownLargeImages) {
            decodeOptions.scaleDownLimitBytes = ImageVariant.scaleDownLimitBytes
        }
    }
}
