/// Sites (scheme, host, port) whose certificate was refused: their other URLs end with the same error, without a request.
///
/// A certificate is the site's and not the URL's, so asking for each URL would tell nothing new, and a server that is slow to take
/// connections would make `timeout` of most of them. A value without a clock.
struct UntrustedSites {
    private struct Refusals {
        var inARow: Int
        var error: WebImageError
        var since: Double
    }

    /// Refusals in a row at a site that has completed a body: one of several servers behind a name may have the wrong certificate.
    static let limitOfDelivering = 3
    /// Seconds until a site is asked again.
    static let holdsFor = 30.0
    private static let most = 4096
    private var sites: [String: Refusals] = [:]

    /// Whether any site was refused.
    var isEmpty: Bool { sites.isEmpty }

    /// The certificate of a site was refused.
    /// - Returns: whether its other URLs end so from now on.
    mutating func didRefuse(_ site: String, _ error: WebImageError, isDelivering: Bool, now: Double) -> Bool {
        if sites.count >= Self.most { sites.removeAll() }
        let inARow = (sites[site]?.inARow ?? 0) + 1
        sites[site] = Refusals(inARow: max(inARow, isDelivering ? 1 : Self.limitOfDelivering), error: error, since: now)
        return refusal(of: site, now: now) != nil
    }

    /// A response came over TLS with a certificate that was verified.
    mutating func didTrust(_ site: String) {
        if !sites.isEmpty { sites[site] = nil }
    }

    /// The error of a URL of the site; nil where it may be asked.
    func refusal(of site: String, now: Double) -> WebImageError? {
        guard let known = sites[site], known.inARow >= Self.limitOfDelivering, now - known.since < Self.holdsFor else {
            return nil
        }
        return known.error
    }
}
