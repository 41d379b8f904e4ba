/// What one download does differently (SDWebImageDownloaderOptions).
public struct DownloadOptions: OptionSet, Sendable, Hashable {
    /// The bits; never stored or sent anywhere.
    public let rawValue: Int

    /// Options by their bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Waits behind everything that has not this option.
    public static let lowPriority = DownloadOptions(rawValue: 1 << 0)
    /// Goes before everything that has not this option.
    public static let highPriority = DownloadOptions(rawValue: 1 << 1)
    /// Takes certificates nobody vouches for: anybody between us and the server can read and change what is sent.
    public static let allowInvalidSSLCertificates = DownloadOptions(rawValue: 1 << 2)
    /// Keeps cookies in memory, in the ``CookieJar`` of the download, and sends them to the site they came from.
    public static let handleCookies = DownloadOptions(rawValue: 1 << 3)

    /// The first bytes are not looked at while they come: whatever the body is, it is wanted.
    package static let uninspected = DownloadOptions(rawValue: 1 << 4)

    /// Of the response only what decides about its body is collected: the headers and figures beside it stay empty.
    package static let bodyOnly = DownloadOptions(rawValue: 1 << 5)

    /// Its bytes are told while they come (`progress` events), and its first bytes are looked at whatever else is asked.
    public static let progressive = DownloadOptions(rawValue: 1 << 6)

    /// Its headers ask only for a change, so a 304 is an answer: an image with that status and no bytes.
    package static let conditional = DownloadOptions(rawValue: 1 << 7)

    /// No robots.txt is asked: it is one.
    package static let unasked = DownloadOptions(rawValue: 1 << 8)

    /// Those that change what is transferred or told, so that downloads which differ in them cannot share one transfer.
    var ofTransfer: DownloadOptions {
        intersection([
            .allowInvalidSSLCertificates, .handleCookies, .uninspected, .bodyOnly, .progressive, .conditional, .unasked,
        ])
    }

    /// The queue it waits in: 0 is served first.
    var priority: Int { contains(.highPriority) ? 0 : contains(.lowPriority) ? 2 : 1 }
}

extension WebImageOptions {
    /// What the downloader has to know of them.
    var ofDownload: DownloadOptions {
        var options: DownloadOptions = []
        if contains(.lowPriority) { options.insert(.lowPriority) }
        if contains(.highPriority) { options.insert(.highPriority) }
        if contains(.handleCookies) { options.insert(.handleCookies) }
        if contains(.allowInvalidSSLCertificates) { options.insert(.allowInvalidSSLCertificates) }
        if contains(.progressiveDownload) { options.insert(.progressive) }
        return options
    }
}
