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
    // Copies of members that are read for each request: to reach into a configuration copies all of it.
    let asksRobots: Bool
    let requestsPerSecond: Double?
    let maxRetryAfter: Double
    private let modifiesRequests: Bool
    private let filters: [(filter: any ImageURLFilter, reason: FailureReason)]
    private let transfersPerHost: Int?
    private let transfersPerAddress: Int?
    private let limitsOpenedHosts: Bool
    private let limitsOpenedAddresses: Bool
    private let respectsRobotsTag: Bool
    private let ownHosts: HostPatterns

    private init(_ configuration: ImageDownloader.Configuration, spool: BodySpool.Place?) {
        self.configuration = configuration
        retryPolicy = configuration.retryPolicy
        limits = ReceivedResponse.Limits(configuration, spool: spool)
        productToken = configuration.productToken
        checkInterval = configuration.checkInterval
        asksRobots = configuration.asksRobots
        requestsPerSecond = configuration.hosts.requestsPerSecond
        maxRetryAfter = configuration.maxRetryAfter
        modifiesRequests = configuration.headersFilter != nil || configuration.requestModifier != nil
        filters =
            configuration.workerFilters.map { ($0, .workerFilter) } + configuration.urlFilters.map { ($0, .urlFilter) }
        transfersPerHost = configuration.maxConnectionsPerHost
        transfersPerAddress = configuration.maxConnectionsPerAddress
        limitsOpenedHosts = configuration.limitsOpenedAddresses
        limitsOpenedAddresses = configuration.limitsTransfersToOpenedAddresses
        respectsRobotsTag = configuration.respectsRobotsTag
        ownHosts = HostPatterns(configuration.ownHosts)
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

    /// Transfers at once to a site's host.
    func transferLimit(to site: RequestSite) -> Int {
        guard let transfersPerHost else { return .max }
        return !limitsOpenedHosts && site.isOpened ? .max : transfersPerHost
    }

    /// Transfers at once to the address of a site; nil: no limit.
    func addressLimit(of site: RequestSite) -> Int? {
        !limitsOpenedAddresses && site.isOpened ? nil : transfersPerAddress
    }

    /// Whether `X-Robots-Tag` of a response to this request can refuse its image.
    func respectsRobotsTag(of request: RequestURL, at site: RequestSite) -> Bool {
        respectsRobotsTag && !site.isOpened && !ownHosts.contains(request.host)
    }

    /// Why a URL may not be requested, by the filters.
    func refusal(of request: RequestURL) -> WebImageError? {
        do throws(WebImageError) {
            for (filter, reason) in filters {
                if let message = try filter.refusal(of: request.text) {
                    return WebImageError(.refused, message, reason: reason)
                }
            }
            return nil
        } catch {
            return error
        }
    }

    /// Applies filter and modifier to a request; nil headers if there is neither.
    func modifiedRequest(
        _ key: DownloadOperation.Key, _ request: RequestURL
    ) throws(WebImageError) -> (request: RequestURL, headers: [HTTPHeader]?) {
        guard modifiesRequests else { return (request, nil) }
        var wanted = DownloadRequest(url: key.url, headers: configuration.headers(with: key.headers))
        if let headersFilter = configuration.headersFilter { wanted.headers = headersFilter(key.url, wanted.headers) }
        if let requestModifier = configuration.requestModifier {
            guard let modified = requestModifier(wanted) else {
                throw WebImageError(.invalidDownloadOperation, "the request modifier refused the request")
            }
            wanted = modified
        }
        if let bad = wanted.headers.first(where: { !$0.isValid }) {
            throw WebImageError(.invalidDownloadOperation, "the modified header \(bad.name) cannot be sent")
        }
        return (wanted.url.hasBytes(of: key.url) ? request : try RequestURL(wanted.url), wanted.headers)
    }
}
