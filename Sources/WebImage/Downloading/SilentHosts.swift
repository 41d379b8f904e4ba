internal import HeapModule

/// Hosts on hold because they do not respond, and for how long their URLs wait. Used only on the downloader's thread; the caller passes the
/// time.
final class SilentHosts {
    private struct Silence: Comparable {
        let since: Double
        let host: String
        static func < (lhs: Self, rhs: Self) -> Bool { lhs.since < rhs.since }
    }

    private var policy = HostPolicy()
    /// Since when each is silent.
    private var hosts: [ByteText: Double] = [:]
    /// Those whose URLs have not waited long enough. Stale entries, which no longer agree with ``hosts``, are skipped.
    private var order = Heap<Silence>()
    /// Seconds for which URLs wait: ``HostPolicy/waitLimit``, or less while nothing else is left.
    private(set) var waitLimit = HostPolicy().waitLimit

    var isEmpty: Bool { hosts.isEmpty }

    /// The next time at which URLs of a host have waited so long; infinity: none does.
    var nextEnd: Double { order.min.map { $0.since + waitLimit } ?? .infinity }

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
        if let known = hosts[host], known <= since { return }
        hosts[host] = since
        order.insert(Silence(since: since, host: host))
        skipStale()
    }

    func remove(_ host: String) {
        // Mostly there are none, and a look-up by name is not free.
        if !hosts.isEmpty, hosts.removeValue(forKey: host) != nil { skipStale() }
    }

    /// A host whose URLs have waited long enough, once.
    func takeEnded(now: Double) -> String? {
        guard now >= nextEnd, let ended = order.popMin() else { return nil }
        skipStale()
        return ended.host
    }

    /// Adjusts how long URLs wait, if ``HostPolicy/shortensLastWait``.
    /// * `seconds`: how long they may while only silent hosts have downloads left; nil: others do.
    func shortenWait(to seconds: Double?) {
        let limit = min(policy.waitLimit, policy.shortensLastWait ? seconds ?? .infinity : .infinity)
        if limit != waitLimit { setWaitLimit(limit) }
    }

    private func setWaitLimit(_ seconds: Double) {
        waitLimit = seconds
        order = Heap(hosts.map { Silence(since: $0.value, host: $0.key.text) })
    }

    private func skipStale() {
        while let first = order.min, hosts[first.host] != first.since { order.removeMin() }
    }
}
