/// Decides for a manager (SDWebImageManagerDelegate). Called on the manager's threads, for several URLs at the same time, while others that
/// want the same image wait: it has to be quick. Every method may be left out. A worker's loads ask nobody.
public protocol ImageManagerDelegate: AnyObject, Sendable {
    /// Asked where an image is not in the cache and its URL not on the list of failed ones.
    /// - Parameters:
    ///   - imageManager: who asks.
    ///   - url: byte for byte as it was given.
    /// - Returns: whether it may be downloaded, true where this is left out; false ends the load with `notCached`.
    func imageManager(_ imageManager: ImageManager, shouldDownloadImageFor url: String) -> Bool

    /// Asked where a URL has just failed; not for what nobody can blame the URL for, `cancelled` and `localFault`, nor where the policy is
    /// `none`.
    /// - Parameters:
    ///   - imageManager: who asks.
    ///   - url: byte for byte as it was given.
    ///   - error: how its download or its check ended.
    /// - Returns: whether it is put onto the list of failed URLs, in place of the policy's rule; nil, and where this is left out: the policy
    ///   decides.
    func imageManager(
        _ imageManager: ImageManager, shouldBlockFailedURL url: String, with error: WebImageError
    ) -> Bool?

    /// Asked where an image was downloaded and verified, before it is stored.
    /// - Parameters:
    ///   - imageManager: who asks.
    ///   - image: its bytes.
    ///   - info: what its check found out.
    ///   - url: byte for byte as it was given.
    /// - Returns: another image that is verified and stored in its place; nil, and where this is left out: it stays as it came.
    func imageManager(
        _ imageManager: ImageManager, transformDownloadedImage image: ImageBody, info: ImageInfo, for url: String
    ) -> [UInt8]?
}

extension ImageManagerDelegate {
    /// true
    public func imageManager(_ imageManager: ImageManager, shouldDownloadImageFor url: String) -> Bool { true }

    /// nil
    public func imageManager(
        _ imageManager: ImageManager, shouldBlockFailedURL url: String, with error: WebImageError
    ) -> Bool? { nil }

    /// nil
    public func imageManager(
        _ imageManager: ImageManager, transformDownloadedImage image: ImageBody, info: ImageInfo, for url: String
    ) -> [UInt8]? { nil }
}
