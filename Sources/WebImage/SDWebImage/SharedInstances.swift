// SDWebImage's shared instances. Made when they are first asked for and never by anything in this package; what fails then fails for as long as
// the process lives, since what asks for them cannot say where else the cache should be.

extension ImageManager {
    /// The manager of the process, with the defaults of every configuration and the cache in ``ImageCache/defaultDirectory``.
    /// - Throws: `invalidConfiguration` or `localFault` where that cache cannot be opened.
    public static var shared: ImageManager {
        get throws(WebImageError) { try sharedResult.get() }
    }

    private static let sharedResult = Result { () throws(WebImageError) in
        try ImageManager(cache: ImageCache(directory: ImageCache.defaultDirectory))
    }
}

extension ImageDownloader {
    /// The downloader of the shared manager, as in SDWebImage: to cancel its downloads ends the shared manager's loads.
    /// - Throws: what ``ImageManager/shared`` throws.
    public static var shared: ImageDownloader {
        get throws(WebImageError) { try ImageManager.shared.downloader }
    }
}

extension ImagePrefetcher {
    /// A prefetcher over the shared manager.
    /// - Throws: what ``ImageManager/shared`` throws.
    public static var shared: ImagePrefetcher {
        get throws(WebImageError) { try sharedResult.get() }
    }

    private static let sharedResult = Result { () throws(WebImageError) in
        ImagePrefetcher(manager: try ImageManager.shared)
    }
}
