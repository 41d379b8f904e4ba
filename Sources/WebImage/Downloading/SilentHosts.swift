/// Hosts on hold because they do not respond, and for how long their URLs wait. Used only on the downloader's thread; the caller passes the
/// time.
final class SilentHosts {
    private struct Silence {
        let since: Double
        var hasEnded = false
    }

    private var hosts: [String: Silence] = [:]
    private var policy = HostPolicy()
    /// Seconds for which URLs wait: ``HostPolicy/waitLimit``, or less while nothing else is left.
    private(set) var waitLimit = HostPolicy().waitLimit
    /// The next time at which URLs of a host have waited so long; infinity: none does.
    private(set) var nextEnd = Double.infinity

    var isEmpty: Bool { hosts.isEmpty }

    func contains(_ host: String) -> Bool { hosts[host] != nil }

    /// Forgets all hosts.
    func reset(_ policy: HostPolicy) {
        hosts = [:]
        renew(policy)
    }

    func renew(_ policy: HostPolicy) {
        self.policy = policy
        setWaitLimit(policy.waitLimit)
    }

    func insert(_ host: String, since: Double) {
        if let known = hosts[host], known.since <= since { return }
        hosts[host] = Silence(since: since)
        nextEnd = min(nextEnd, since + waitLimit)
    }

    func remove(_ host: String) {
        if hosts.removeValue(forKey: host) != nil { findNextEnd() }
    }

    /// A host whose URLs have waited long enough, once.
    func takeEnded(now: Double) -> String? {
        guard now >= nextEnd else { return nil }
        let host = hosts.first { !$0.value.hasEnded && now >= $0.value.since + waitLimit }?.key
        if let host { hosts[host]?.hasEnded = true }
        findNextEnd()
        return host
    }

    /// Adjusts how long URLs wait, if ``HostPolicy/shortensLastWait``.
    /// * `seconds`: how long they may while only silent hosts have downloads left; nil: others do.
    func shortenWait(to seconds: Double?) {
        let limit = min(policy.waitLimit, policy.shortensLastWait ? seconds ?? .infinity : .infinity)
        if limit != waitLimit { setWaitLimit(limit) }
    }

    private func setWaitLimit(_ seconds: Double) {
        waitLimit = seconds
        for host in hosts.keys { hosts[host]?.hasEnded = false }
        findNextEnd()
    }

    private func findNextEnd() {
        nextEnd = hosts.values.reduce(.infinity) { $1.hasEnded ? $0 : min($0, $1.since + waitLimit) }
    }
}
