/// Sites (scheme, host, port) whose certificate was refused: their other URLs fail with the same error, without a request. The certificate
/// belongs to the site, so further requests would reveal nothing new, and on a server that accepts connections slowly most of them would
/// end as `timeout`. A value without a clock.
struct UntrustedSites {
    private struct Refusals {
        var inARow: Int
        var error: WebImageError
        var since: Double
    }

    /// Required consecutive refusals of a site that has completed a body: only one of a name's servers may have the wrong certificate.
    static let refusalLimitOfProven = 3
    static let blockSeconds = 30.0
    private static let most = 4096
    private var sites: [ByteText: Refusals] = [:]

    var isEmpty: Bool { sites.isEmpty }

    /// Records a refused certificate.
    /// - Returns: whether the site's other URLs fail from now on.
    mutating func didRefuse(_ site: String, _ error: WebImageError, isProven: Bool, now: Double) -> Bool {
        if sites.count >= Self.most { sites.removeAll() }
        let inARow = (sites[site]?.inARow ?? 0) + 1
        sites[site] = Refusals(inARow: max(inARow, isProven ? 1 : Self.refusalLimitOfProven), error: error, since: now)
        return refusal(of: site, now: now) != nil
    }

    mutating func didTrust(_ site: String) {
        if !sites.isEmpty { sites[site] = nil }
    }

    /// The error for a URL of the site; nil if it may be requested.
    func refusal(of site: String, now: Double) -> WebImageError? {
        guard let known = sites[site], known.inARow >= Self.refusalLimitOfProven, now - known.since < Self.blockSeconds
        else {
            return nil
        }
        return known.error
    }
}
