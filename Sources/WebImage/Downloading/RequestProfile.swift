/// How requests are made and which answers are taken: a downloader's configuration, or the variation of it that one batch asks for.
///
/// What a batch asks for becomes one by `RequestSettings.apply`. Downloads share a transfer only with those of the same profile. What belongs
/// to the downloader as a whole (its number of transfers, proxy, certificates, addresses, temporary files) a variation cannot change.
package final class RequestProfile: Sendable {
    let configuration: ImageDownloader.Configuration
    let retryPolicy: RetryPolicy
    let limits: ReceivedResponse.Limits
    /// What robots.txt and X-Robots-Tag call this program: the first word of its User-Agent.
    let productToken: String
    /// How often its running transfers are looked at, in seconds.
    let checkInterval: Double

    /// * `spool`: where large bodies are written, if not to a place of its own.
    private init(_ configuration: ImageDownloader.Configuration, spool: BodySpool.Place?) {
        self.configuration = configuration
        retryPolicy = configuration.retryPolicy
        limits = ReceivedResponse.Limits(configuration, spool: spool)
        productToken = configuration.productToken
        checkInterval = configuration.checkInterval
    }

    convenience init(_ configuration: ImageDownloader.Configuration) {
        self.init(configuration, spool: configuration.spool)
    }

    /// A variation of this one.
    /// - Throws: `invalidConfiguration`, naming the member and its range.
    func varied(
        _ change: (inout ImageDownloader.Configuration) -> Void
    ) throws(WebImageError) -> RequestProfile {
        var new = configuration
        change(&new)
        try new.validate()
        return RequestProfile(new, spool: limits.spool)
    }
}
