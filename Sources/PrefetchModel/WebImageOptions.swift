/// How one load differs from the usual (SDWebImageOptions). Options travel by name, never by bit: the bits were renumbered in SDWebImage 5.
public struct WebImageOptions: OptionSet, Sendable, Hashable {
    /// The bits, which mean something in this process only.
    public let rawValue: UInt32

    /// By bits of this process.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Try a URL that failed before; a success takes it off the list of failed URLs.
    public static let retryFailed = WebImageOptions(rawValue: 1 << 0)
    /// Ask the cache and never the network.
    public static let fromCacheOnly = WebImageOptions(rawValue: 1 << 1)
    /// Wait behind every download that has not this option.
    public static let lowPriority = WebImageOptions(rawValue: 1 << 2)
    /// Go before every download that has not this option.
    public static let highPriority = WebImageOptions(rawValue: 1 << 3)
    /// Verify what is downloaded and keep nothing of it on disk. What is there already is a hit.
    public static let cacheMemoryOnly = WebImageOptions(rawValue: 1 << 4)
    /// Look at the first bytes whatever level is asked, and tell of bytes while they come. Nobody sees half an image here.
    public static let progressiveDownload = WebImageOptions(rawValue: 1 << 5)
    /// Ask the server whether what the cache has is still its image: by If-None-Match and If-Modified-Since where it said what to ask for.
    /// 304 ends `notModified`; other bytes take the place of the old ones in one step. Where asking fails the load has failed, and the
    /// image stays in the cache.
    public static let refreshCached = WebImageOptions(rawValue: 1 << 6)
    /// A worker that is told to leave lets this load go on to its end, past its drain timeout; only a second signal ends it. A load in this
    /// process goes on in any case.
    public static let continueInBackground = WebImageOptions(rawValue: 1 << 7)
    /// Keep cookies in memory, in the ``CookieJar`` of the load, and send them to the site they came from.
    public static let handleCookies = WebImageOptions(rawValue: 1 << 8)
    /// Take certificates nobody vouches for: anybody between us and the server can read and change what is sent.
    public static let allowInvalidSSLCertificates = WebImageOptions(rawValue: 1 << 9)
    /// Whoever submits looks into the cache and ends what it has, before any worker is asked. A load in this process looks there first in
    /// any case.
    public static let queryDiskSync = WebImageOptions(rawValue: 1 << 10)
    /// Read the bytes on disk of a hit too, in memory or not: those that are not what was stored are moved aside, and it is no hit.
    public static let queryDataWhenInMemory = WebImageOptions(rawValue: 1 << 11)
    /// As ``refreshCached``, but what the server called fresh (Cache-Control, Expires) is a hit without a request for as long as that says.
    public static let honorCacheControl = WebImageOptions(rawValue: 1 << 12)
    /// Keep ETag, Last-Modified and the time an image is fresh beside it, for a later ``refreshCached``, which keeps them too.
    public static let keepHTTPValidators = WebImageOptions(rawValue: 1 << 13)

    private static let named: [(name: String, option: WebImageOptions)] = [
        ("retryFailed", .retryFailed), ("fromCacheOnly", .fromCacheOnly), ("lowPriority", .lowPriority),
        ("highPriority", .highPriority), ("cacheMemoryOnly", .cacheMemoryOnly),
        ("progressiveDownload", .progressiveDownload), ("refreshCached", .refreshCached),
        ("continueInBackground", .continueInBackground), ("handleCookies", .handleCookies),
        ("allowInvalidSSLCertificates", .allowInvalidSSLCertificates), ("queryDiskSync", .queryDiskSync),
        ("queryDataWhenInMemory", .queryDataWhenInMemory), ("honorCacheControl", .honorCacheControl),
        ("keepHTTPValidators", .keepHTTPValidators),
    ]

    /// Every option's name, as it is written in SDWebImage's Swift interface.
    public static var allNames: [String] { named.map(\.name) }

    /// One option by its name; nil for a name that is none.
    public init?(name: String) {
        guard let option = Self.named.first(where: { $0.name == name })?.option else { return nil }
        self = option
    }

    /// Options by their names.
    /// - Throws: `invalidConfiguration` with a sentence for a name that is none here.
    public init(names: some Sequence<String>) throws(WebImageError) {
        self = []
        for name in names {
            guard let option = WebImageOptions(name: name) else {
                throw WebImageError(.invalidConfiguration, Self.refusal(ofName: name))
            }
            insert(option)
        }
    }

    /// The names of the options in this set.
    public var names: [String] { Self.named.filter { contains($0.option) }.map(\.name) }

    /// Why a name is no option here: SDWebImage's that say what a view does have no meaning without one.
    public static func refusal(ofName name: String) -> String {
        switch name {
        case "delayPlaceholder":
            "delayPlaceholder has no meaning off a screen: there is no view that could show a placeholder"
        case "avoidAutoSetImage":
            "avoidAutoSetImage has no meaning off a screen: there is no view that an image could be set on"
        case "forceTransition":
            "forceTransition has no meaning off a screen: there is no view that could change from one image to the next"
        case "scaleDownLargeImages", "transformAnimatedImage":
            "\(name) is about decoded images, and what is kept here are the bytes as they came"
        default: "there is no option '\(name.prefix(40))'; there are \(allNames.joined(separator: ", "))"
        }
    }

    /// Whether what the cache has may have to be asked for.
    package var refreshes: Bool { !isDisjoint(with: [.refreshCached, .honorCacheControl]) }

    /// Whether a hit is more than a look at the cache.
    package var questionsHits: Bool {
        !isDisjoint(with: [.refreshCached, .honorCacheControl, .queryDataWhenInMemory])
    }

    /// Whether validators are kept with the file.
    package var keepsValidators: Bool { !isDisjoint(with: [.refreshCached, .honorCacheControl, .keepHTTPValidators]) }
}

/// As a list of names. Names that this version does not know are passed over.
extension WebImageOptions: Codable {
    /// Reads the names.
    public init(from decoder: any Decoder) throws {
        var list = try decoder.unkeyedContainer()
        self = []
        while !list.isAtEnd { formUnion(WebImageOptions(name: try list.decode(String.self)) ?? []) }
    }

    /// Writes the names.
    public func encode(to encoder: any Encoder) throws {
        var list = encoder.unkeyedContainer()
        for name in names { try list.encode(name) }
    }
}
