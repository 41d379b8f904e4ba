// SDWebImage's shared instances. Created on first use, never by this package. A failure persists for the life of the process, because
// callers cannot name another cache directory.

extension ImageManager {
    /// The shared manager, with default configurations and the cache in ``ImageCache/defaultDirectory``.
    /// - Throws: `invalidConfiguration` or `localFault` if that cache cannot be opened.
    public static var shared: ImageManager {
        get throws(WebImageError) { try sharedResult.get() }
    }

    private static let sharedResult = Result { () throws(WebImageError) in
        try ImageManager(cache: ImageCache(directory: ImageCache.defaultDirectory))
    }
}

extension ImageDownloader {
    /// The downloader of the shared manager, as in SDWebImage: cancelling its downloads ends the shared manager's loads.
    /// - Throws: errors of ``ImageManager/shared``.
    public static var shared: ImageDownloader {
        get throws(WebImageError) { try ImageManager.shared.downloader }
    }
}

extension ImagePrefetcher {
    /// A prefetcher over the shared manager.
    /// - Throws: errors of ``ImageManager/shared``.
    public static var shared: ImagePrefetcher {
        get throws(WebImageError) { try sharedResult.get() }
    }

    private static let sharedResult = Result { () throws(WebImageError) in
        ImagePrefetcher(manager: try ImageManager.shared)
    }
}
