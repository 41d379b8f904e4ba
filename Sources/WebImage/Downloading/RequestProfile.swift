/// How requests are made and which responses are accepted: a downloader's configuration, or one batch's variation of it.
/// `RequestSettings.apply` creates the variation of a batch. Only downloads with the same profile share a transfer. Settings of the
/// downloader as a whole (number of transfers, proxy, certificates, addresses, temporary files) cannot vary.
package final class RequestProfile: Sendable {
    let configuration: ImageDownloader.Configuration
    let retryPolicy: RetryPolicy
    let limits: ReceivedResponse.Limits
    /// The name of this program in robots.txt and X-Robots-Tag: the first word of its User-Agent.
    let productToken: String
    let checkInterval: Double

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

    /// Creates a variation.
    /// - Throws: `invalidConfiguration` with the member and its range.
    func varied(
        _ change: (inout ImageDownloader.Configuration) -> Void
    ) throws(WebImageError) -> RequestProfile {
        var new = configuration
        change(&new)
        try new.validate()
        return RequestProfile(new, spool: limits.spool)
    }
}
