import Origin
import TestSupport

@testable import WebImage

/// An origin and a folder, with managers over them.
struct ManagerFixture {
    let origin: OriginServer
    let folder = TemporaryDirectory()

    init() throws {
        origin = try OriginServer()
    }

    func cache(
        _ configuration: ImageCache.Configuration = ImageCache.Configuration(), filter: ImageCache.KeyFilter? = nil
    ) throws -> ImageCache {
        try ImageCache(directory: folder.path("cache"), configuration: configuration, cacheKeyFilter: filter)
    }

    /// A manager for the loopback origin, without a limit of time that a busy machine could pass by chance.
    func manager(
        policy: FailedURLPolicy = .smart, cache: ImageCache? = nil,
        configure: (inout ImageManager.Configuration) -> Void = { _ in },
        downloads change: (inout ImageDownloader.Configuration) -> Void = { _ in }
    ) throws -> ImageManager {
        var configuration = ImageManager.Configuration()
        configuration.failedURLPolicy = policy
        configure(&configuration)
        var downloads = ImageDownloader.Configuration()
        downloads.addressPolicy = AddressPolicy(allow: [CIDR("127.0.0.0/8")!])
        downloads.retryBaseDelay = 0.001
        downloads.retryMaxDelay = 0.002
        downloads.downloadTimeout = 50
        change(&downloads)
        return try ImageManager(cache: try cache ?? self.cache(), downloads: downloads, configuration: configuration)
    }

    /// Routes a PNG of so many pixels to a path; returns its URL and its bytes.
    func image(_ path: String, size: Int = 9, fault: OriginResponse.Fault? = nil) -> (url: String, bytes: [UInt8]) {
        let bytes = GeneratedImage.png(seed: UInt64(size), width: size, height: size)
        origin.route(path, OriginResponse(body: bytes, fault: fault))
        return (origin.url(path), bytes)
    }
}

extension ImageManager {
    /// What a load ended with; nil where it ended well.
    func failure(_ url: String, _ options: WebImageOptions = []) async -> WebImageError? {
        do throws(WebImageError) {
            _ = try await loadImage(with: url, options: options)
            return nil
        } catch {
            return error
        }
    }
}
