/// How a downloader treats hosts. All durations are in seconds.
///
/// A host is the name or address in a URL, with its port unless 80 or 443. Redirects and retries count as requests.
public struct HostPolicy: Sendable, Equatable {
    /// Requests per second to one host, evenly spaced and not accumulated; default nil (no limit). The actual rate is 2.5 % lower, so that
    /// requests that are late by milliseconds never exceed the limit in any second.
    public var requestsPerSecond: Double?
    /// Whether 429, 503 and `Retry-After` hold back all requests to the host, and growing latency reduces concurrency; default false: only
    /// the URL waits.
    public var backsOff = false
    /// Consecutive failures (no name, no connection, no response) that put a host on hold except for single probes; default nil (never).
    public var failuresInARow: Int?
    /// How long URLs wait for a host on hold before they fail like its last request; default 30. Later URLs, except for probes, fail at
    /// once until it responds. Of a site that has never completed a body each failed probe is also a try of all URLs that wait for it.
    public var waitLimit = 30.0
    /// Whether URLs wait for a shorter time while only hosts on hold have downloads left: for the longer of twice
    /// ``ImageDownloader/Configuration/downloadTimeout`` and a quarter of the time since the downloader had nothing to do, so that a long
    /// run does not lose URLs to a short outage; at most ``waitLimit``. Default false.
    public var shortensLastWait = false

    /// Default policy: no limits.
    public init() {}

    var isIdle: Bool { requestsPerSecond == nil && !backsOff && failuresInARow == nil }

    /// - Throws: `invalidConfiguration` with the member and its range.
    func validate() throws(WebImageError) {
        if let rate = requestsPerSecond, !(rate >= 0.001 && rate <= 100_000) {
            throw WebImageError(.invalidConfiguration, "requestsPerSecond must be 0.001 to 100,000")
        }
        if let failuresInARow, failuresInARow < 1 {
            throw WebImageError(.invalidConfiguration, "failuresInARow must be at least 1")
        }
        guard waitLimit >= 0 && waitLimit <= 86_400 else {
            throw WebImageError(.invalidConfiguration, "waitLimit must be 0 to 86,400 seconds")
        }
    }
}
