/// What bounds the requests of some URLs of a host. URLs with the same limits share them, whatever their batch; others do not count.
struct HostLimits: Hashable {
    /// Transfers at once.
    let transfers: Int
    /// Requests per second; nil: unlimited.
    let rate: Double?
    /// A higher rate that the site asks for of all its URLs, if they also have a lower one of their own.
    let siteRate: Double?

    /// * `rate`: of their own; nil: none.
    /// * `siteRate`: what the site's robots.txt asks for; nil: nothing.
    init(transfers: Int, rate: Double? = nil, siteRate: Double? = nil) {
        self.transfers = max(1, transfers)
        if let rate, let siteRate, rate < siteRate {
            (self.rate, self.siteRate) = (rate, siteRate)
        } else {
            // Who keeps to the site's rate keeps to a higher one, too.
            (self.rate, self.siteRate) = (siteRate ?? rate, nil)
        }
    }

    /// Whether each of their requests takes an instant of this rate.
    func uses(_ rate: Double) -> Bool { self.rate == rate || siteRate == rate }
}
