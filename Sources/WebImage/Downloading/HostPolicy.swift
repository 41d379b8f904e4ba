/// How a downloader treats the hosts it asks. All durations are seconds.
///
/// A host is the name or address of a URL, with its port where that is neither 80 nor 443, or one of ``groups``. Redirects and further
/// tries are requests as any other.
public struct HostPolicy: Sendable, Equatable {
    /// Requests a second to one host, begun at even distances and never saved up; nil (no limit) by default. A little fewer are made
    /// (2.5 %), so that also those that are late by some milliseconds never make one more in any second.
    public var requestsPerSecond: Double?
    /// Whether 429, 503 and `Retry-After` hold back all requests to the host, and growing latency makes them fewer at once; false by
    /// default: they delay the URL alone.
    public var backsOff = false
    /// Failures in a row (no name, no connection, no answer) after which a host is left alone but for single probes; nil (never) by
    /// default.
    public var failuresInARow: Int?
    /// How long URLs wait for a host that is left alone until they end as its last request did, 30 by default. Later ones end at once,
    /// but for the probes, until it answers.
    public var patience = 30.0
    /// Domains each of which counts as one host, together with all names below it. None by default.
    public var groups: [String] = []

    /// The defaults: every host is asked as often as there are URLs.
    public init() {}

    /// Whether there is anything to be kept to.
    var isIdle: Bool { requestsPerSecond == nil && !backsOff && failuresInARow == nil }

    /// - Throws: `invalidConfiguration`, naming the member and its range.
    func validate() throws(WebImageError) {
        if let rate = requestsPerSecond, !(rate >= 0.001 && rate <= 100_000) {
            throw WebImageError(.invalidConfiguration, "requestsPerSecond must be 0.001 to 100,000")
        }
        if let failuresInARow, failuresInARow < 1 {
            throw WebImageError(.invalidConfiguration, "failuresInARow must be at least 1")
        }
        guard patience >= 0 && patience <= 86_400 else {
            throw WebImageError(.invalidConfiguration, "patience must be 0 to 86,400 seconds")
        }
    }

    /// What counts as one host.
    func host(of request: RequestURL) -> String {
        if !groups.isEmpty, let group = groups.first(where: { Self.contains($0, request.host) }) { return group }
        return request.port == 80 || request.port == 443 ? request.host : "\(request.host):\(request.port)"
    }

    private static func contains(_ domain: String, _ host: String) -> Bool {
        host.hasSuffix(domain) && (host.utf8.count == domain.utf8.count || host.dropLast(domain.count).last == ".")
    }
}
