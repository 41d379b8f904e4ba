/// Options of one load (SDWebImageOptions). They are exchanged by name, never by bit: the bits were renumbered in SDWebImage 5.
public struct WebImageOptions: OptionSet, Sendable, Hashable {
    /// The bits; meaningful only within this process.
    public let rawValue: UInt32

    /// Creates options from bits of this process.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Try a URL that failed before; a success removes it from the blacklist.
    public static let retryFailed = WebImageOptions(rawValue: 1 << 0)
    /// Use only the cache, never the network.
    public static let fromCacheOnly = WebImageOptions(rawValue: 1 << 1)
    /// Queue behind every download without this option.
    public static let lowPriority = WebImageOptions(rawValue: 1 << 2)
    /// Queue before every download without this option.
    public static let highPriority = WebImageOptions(rawValue: 1 << 3)
    /// Verify the download but do not store it on disk. An image already there is a hit.
    public static let cacheMemoryOnly = WebImageOptions(rawValue: 1 << 4)
    /// Inspect the first bytes at any validation level, and report progress while bytes arrive. Partial images are never delivered.
    public static let progressiveDownload = WebImageOptions(rawValue: 1 << 5)
    /// Revalidate a cached image with If-None-Match and If-Modified-Since if its validators are known. 304 ends as `notModified`; other
    /// bytes atomically replace the old ones. If the request fails, the load fails and the image stays in the cache.
    public static let refreshCached = WebImageOptions(rawValue: 1 << 6)
    /// Let the load finish past the drain timeout of a stopping worker, for at most 180 seconds or until a second signal. A load in this
    /// process always continues.
    public static let continueInBackground = WebImageOptions(rawValue: 1 << 7)
    /// Keep cookies in memory, in the ``CookieJar`` of the load, and send them to the site that set them.
    public static let handleCookies = WebImageOptions(rawValue: 1 << 8)
    /// Accept invalid TLS certificates (INSECURE): anyone on the network path can read and change the traffic.
    public static let allowInvalidSSLCertificates = WebImageOptions(rawValue: 1 << 9)
    /// Check the cache on submission and finish the hits there, before any worker is involved. A load in this process always does so.
    public static let queryDiskSync = WebImageOptions(rawValue: 1 << 10)
    /// Also read the bytes on disk of a hit, even if it is in memory. Corrupted files are moved aside and are not a hit.
    public static let queryDataWhenInMemory = WebImageOptions(rawValue: 1 << 11)
    /// As ``refreshCached``, but a response marked fresh (Cache-Control, Expires) is a hit without a request until it expires.
    public static let honorCacheControl = WebImageOptions(rawValue: 1 << 12)
    /// Reduce images whose bitmap would take more than 60 MiB, at 4 bytes a pixel: the pixels of a load, and what a worker stores, under a
    /// key of its own.
    public static let scaleDownLargeImages = WebImageOptions(rawValue: 1 << 14)
    /// Transform animations too, of which only the first frame is left. Without it they are kept as they are.
    public static let transformAnimatedImage = WebImageOptions(rawValue: 1 << 15)

    private static let named: [(name: String, option: WebImageOptions)] = [
        ("retryFailed", .retryFailed), ("fromCacheOnly", .fromCacheOnly), ("lowPriority", .lowPriority),
        ("highPriority", .highPriority), ("cacheMemoryOnly", .cacheMemoryOnly),
        ("progressiveDownload", .progressiveDownload), ("refreshCached", .refreshCached),
        ("continueInBackground", .continueInBackground), ("handleCookies", .handleCookies),
        ("allowInvalidSSLCertificates", .allowInvalidSSLCertificates), ("queryDiskSync", .queryDiskSync),
        ("queryDataWhenInMemory", .queryDataWhenInMemory), ("honorCacheControl", .honorCacheControl),
        ("scaleDownLargeImages", .scaleDownLargeImages),
        ("transformAnimatedImage", .transformAnimatedImage),
    ]

    /// All option names, as in SDWebImage's Swift interface.
    public static var allNames: [String] { named.map(\.name) }

    /// Looks up one option by name: `retryFailed`, or `SDWebImageRetryFailed` as in Objective-C.
    public init?(name: String) {
        let name = Self.plain(name)
        guard let option = Self.named.first(where: { $0.name == name })?.option else { return nil }
        self = option
    }

    /// Creates options from names.
    /// - Throws: `invalidConfiguration` for an unknown name.
    public init(names: some Sequence<String>) throws(WebImageError) {
        self = []
        for name in names {
            guard let option = WebImageOptions(name: name) else {
                throw WebImageError(.invalidConfiguration, Self.refusal(ofName: name))
            }
            insert(option)
        }
    }

    private static func plain(_ name: String) -> String {
        let rest = name.hasPrefix("SDWebImage") ? name.dropFirst("SDWebImage".count) : ""
        return rest.isEmpty ? name : rest.prefix(1).lowercased() + rest.dropFirst()
    }

    /// The names of the options in this set.
    public var names: [String] { Self.named.filter { contains($0.option) }.map(\.name) }

    /// Why a name is not supported: SDWebImage's view options have no meaning without a view.
    public static func refusal(ofName name: String) -> String {
        switch plain(name) {
        case "delayPlaceholder":
            "delayPlaceholder has no meaning off a screen: there is no view that could show a placeholder"
        case "avoidAutoSetImage":
            "avoidAutoSetImage has no meaning off a screen: there is no view that an image could be set on"
        case "forceTransition":
            "forceTransition has no meaning off a screen: there is no view that could change from one image to the next"
        default: "there is no option '\(name.prefix(40))'; there are \(allNames.joined(separator: ", "))"
        }
    }

    package var refreshes: Bool { !isDisjoint(with: [.refreshCached, .honorCacheControl]) }

    package var revalidatesHits: Bool {
        !isDisjoint(with: [.refreshCached, .honorCacheControl, .queryDataWhenInMemory])
    }
}

/// Encoded as a list of names. Unknown names are ignored.
extension WebImageOptions: Codable {
    /// Decodes the names; unknown names are ignored.
    public init(from decoder: any Decoder) throws {
        var list = try decoder.unkeyedContainer()
        self = []
        while !list.isAtEnd { formUnion(WebImageOptions(name: try list.decode(String.self)) ?? []) }
    }

    /// Encodes the names.
    public func encode(to encoder: any Encoder) throws {
        var list = encoder.unkeyedContainer()
        for name in names { try list.encode(name) }
    }
}
