/// Options of one download (SDWebImageDownloaderOptions).
public struct DownloadOptions: OptionSet, Sendable, Hashable {
    /// The bits; never stored or sent.
    public let rawValue: Int

    /// Creates options from bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Queue behind every download without this option.
    public static let lowPriority = DownloadOptions(rawValue: 1 << 0)
    /// Queue before every download without this option.
    public static let highPriority = DownloadOptions(rawValue: 1 << 1)
    /// Accept invalid TLS certificates (INSECURE): anyone on the network path can read and change the traffic.
    public static let allowInvalidSSLCertificates = DownloadOptions(rawValue: 1 << 2)
    /// Keep cookies in memory, in the ``CookieJar`` of the download, and send them to the site that set them.
    public static let handleCookies = DownloadOptions(rawValue: 1 << 3)

    /// The first bytes are not inspected during the transfer: any body is accepted.
    package static let uninspected = DownloadOptions(rawValue: 1 << 4)

    /// Report progress (`progress` events), and inspect the first bytes regardless of other options.
    public static let progressive = DownloadOptions(rawValue: 1 << 6)

    /// The headers make the request conditional, so 304 is a result: an image with that status and no bytes.
    package static let conditional = DownloadOptions(rawValue: 1 << 7)

    /// The request is itself for a robots.txt, so none is consulted.
    package static let unasked = DownloadOptions(rawValue: 1 << 8)

    /// The options that change what is transferred or reported: downloads that differ in them cannot share a transfer.
    var transferOptions: DownloadOptions {
        intersection([
            .allowInvalidSSLCertificates, .handleCookies, .uninspected, .progressive, .conditional, .unasked,
        ])
    }

    /// Queue index: 0 is served first.
    var priority: Int { contains(.highPriority) ? 0 : contains(.lowPriority) ? 2 : 1 }
}

extension WebImageOptions {
    var downloadOptions: DownloadOptions {
        var options: DownloadOptions = []
        if contains(.lowPriority) { options.insert(.lowPriority) }
        if contains(.highPriority) { options.insert(.highPriority) }
        if contains(.handleCookies) { options.insert(.handleCookies) }
        if contains(.allowInvalidSSLCertificates) { options.insert(.allowInvalidSSLCertificates) }
        if contains(.progressiveDownload) { options.insert(.progressive) }
        return options
    }
}
