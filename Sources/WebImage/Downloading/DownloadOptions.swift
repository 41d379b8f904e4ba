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
    /// Keeps cookies in memory, for as long as the downloader lives, and sends them to the site they came from.
    public static let handleCookies = DownloadOptions(rawValue: 1 << 3)

    /// Those that change what is transferred, so that downloads which differ in them cannot share one transfer.
    var ofTransfer: DownloadOptions { intersection([.allowInvalidSSLCertificates, .handleCookies]) }

    /// The queue it waits in: 0 is served first.
    var priority: Int { contains(.highPriority) ? 0 : contains(.lowPriority) ? 2 : 1 }
}
