/// Controls a manager (SDWebImageManagerDelegate). Called on the manager's threads, concurrently for different URLs, while other loads of
/// the same image wait: it must be quick. All methods are optional. Not used by workers.
public protocol ImageManagerDelegate: AnyObject, Sendable {
    /// Called if an image is not in the cache and its URL is not on the blacklist; also for a load that waits for the download of
    /// another one, whose image it shares.
    /// - Parameters:
    ///   - imageManager: the manager.
    ///   - url: the URL as given, byte for byte.
    /// - Returns: whether to download it (default true); false ends the load with `notCached`.
    func imageManager(_ imageManager: ImageManager, shouldDownloadImageFor url: String) -> Bool

    /// Called after a URL failed; not for failures that are not the URL's fault (`cancelled`, `localFault`), nor with the policy `none`.
    /// - Parameters:
    ///   - imageManager: the manager.
    ///   - url: the URL as given, byte for byte.
    ///   - error: the error of its download or check.
    /// - Returns: whether to add it to the blacklist, overriding the policy; nil (default): the policy decides.
    func imageManager(
        _ imageManager: ImageManager, shouldBlockFailedURL url: String, with error: WebImageError
    ) -> Bool?

    /// Called after an image was downloaded and verified, before it is stored; for an animation only with the option
    /// `transformAnimatedImage`, because a transformation of one frame would tear it apart.
    /// - Parameters:
    ///   - imageManager: the manager.
    ///   - image: its bytes.
    ///   - info: result of its check.
    ///   - url: the URL as given, byte for byte.
    /// - Returns: `image` (default), which stays as it is, or another one to verify and store instead; nil: nothing is stored, and the load
    ///   ends with `imageRefused`, which the blacklist does not take.
    func imageManager(
        _ imageManager: ImageManager, transformDownloadedImage image: ImageBody, info: ImageInfo, for url: String
    ) -> ImageBody?
}

extension ImageManagerDelegate {
    /// Returns true.
    public func imageManager(_ imageManager: ImageManager, shouldDownloadImageFor url: String) -> Bool { true }

    /// Returns nil.
    public func imageManager(
        _ imageManager: ImageManager, shouldBlockFailedURL url: String, with error: WebImageError
    ) -> Bool? { nil }

    /// Returns the image.
    public func imageManager(
        _ imageManager: ImageManager, transformDownloadedImage image: ImageBody, info: ImageInfo, for url: String
    ) -> ImageBody? { image }
}
