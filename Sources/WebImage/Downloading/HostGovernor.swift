internal import HeapModule

/// Decides when a request to a host may start: by its rate, its responsiveness and its own back-off requests. Not used if ``HostPolicy``
/// has its defaults. Used only on the downloader's thread; the caller passes the time.
final class HostGovernor {
    private final class Record {
        var health = HostHealth()
        /// One for each rate that its URLs have.
        var clocks: [RateClock] = []
        /// Next time to examine this host; infinity: never by itself.
        var wake = Double.infinity
        /// The last published or received slowness: concurrent transfers, and end of validity.
        var slow = (window: Int.max, until: -Double.infinity)
    }

    private struct Wake: Comparable {
        let time: Double
        let host: String
        static func < (lhs: Self, rhs: Self) -> Bool { lhs.time < rhs.time }
        static func == (lhs: Self, rhs: Self) -> Bool { lhs.time == rhs.time }
    }

    private var policy: HostPolicy
    private let silent: SilentHosts
    /// Whether other processes use the same hosts: instants are then reserved centrally.
    private let isShared: Bool
    private var records: [ByteText: Record] = [:]
    private var wakes = Heap<Wake>()
    private var wanting: [(host: String, clock: RateClock)] = []
    private var news: [ByteText: HostReport] = [:]
    private let random: () -> Double

    /// Maximum number of remembered hosts; beyond it, healthy ones are dropped.
    private static let maxHosts = 16_384
    /// Rates of a host beyond which those without reservations are dropped.
    private static let maxClocks = 8

    init(
        _ policy: HostPolicy, isShared: Bool = false, silent: SilentHosts = SilentHosts(),
        random: @escaping () -> Double = { .random(in: 0...1) }
    ) {
        self.policy = policy
        self.silent = silent
        silent.reset(policy)
        self.isShared = isShared
        self.random = random
    }

    /// Whether a request may start now; if so, it is counted.
    /// * `rate`, `siteRate`: as ``HostLimits`` has them: the request takes an instant of each.
    /// * `running`: running transfers to the host.
    /// * `waiting`: waiting operations with these rates, including this one.
    func mayBegin(
        _ host: String, rate: Double?, siteRate: Double? = nil, running: Int, waiting: Int, now: Double
    ) -> Bool {
        let known = records[host]
        if rate == nil && known == nil { return true }
        let record = known ?? self.record(of: host)
        guard record.health.mayBegin(running: running, now: now) else {
            // Examine it again at the end of its hold, and after each of its transfers.
            schedule(record, host, at: record.health.holdUntil > now ? record.health.holdUntil : .infinity)
            return false
        }
        guard rate == nil || takeInstant(record, host, rate, siteRate, waiting, now) else { return false }
        begin(record)
        return true
    }

    /// Takes an instant of both rates, if each has one. The site's is reserved when there is one of the lower rate, and only one at a time:
    /// the others may be used by URLs that have no lower rate.
    private func takeInstant(
        _ record: Record, _ host: String, _ rate: Double?, _ siteRate: Double?, _ waiting: Int, _ now: Double
    ) -> Bool {
        let clocks = [rate, siteRate].compactMap { $0 }.map { clock($0, of: record, now) }
        for (index, clock) in clocks.enumerated() {
            let (until, isNew) = clock.wait(
                reserving: index == 0 ? clock.share : 1, waiting: waiting, now: now)
            if isNew { wanting.append((host, clock)) }
            if let until {
                schedule(record, host, at: until)
                return false
            }
        }
        for clock in clocks { clock.take(now: now) }
        if let clock = clocks.first, clock.reserve(clock.share, waiting: waiting - 1, now: now) {
            wanting.append((host, clock))
        }
        return true
    }

    private func clock(_ rate: Double, of record: Record, _ now: Double) -> RateClock {
        if let known = record.clocks.first(where: { $0.rate == rate }) { return known }
        if record.clocks.count >= Self.maxClocks { record.clocks.removeAll { $0.isUnused(now: now) } }
        let new = RateClock(rate, isShared: isShared)
        record.clocks.append(new)
        return new
    }

    enum Admission {
        case regular
        /// It probes a silent host: not with a URL that the host may never answer.
        case probe
        /// Its host has asked for back-off: only its answer to a URL that it refused before says something of others.
        case afterRefusal
    }

    /// What the next request to a host is, and the one that ``mayBegin(_:rate:siteRate:running:waiting:now:)`` has just admitted.
    func admission(to host: String) -> Admission {
        guard let health = records[host]?.health else { return .regular }
        return health.unresponsiveSince != nil ? .probe : health.isBusy ? .afterRefusal : .regular
    }

    /// Records the end of a probe: the next one may start when it is due.
    func probeEnded(_ host: String) { records[host]?.health.isProbing = false }

    private func record(of host: String) -> Record {
        if let known = records[host] { return known }
        let new = Record()
        records[host] = new
        return new
    }

    private func begin(_ record: Record) {
        if record.health.unresponsiveSince != nil { record.health.isProbing = true }
    }

    private func schedule(_ record: Record, _ host: String, at time: Double) {
        guard time < .infinity, time < record.wake else { return }
        record.wake = time
        wakes.insert(Wake(time: time, host: host))
    }

    /// Whether waiting URLs of a host should fail until its next probe is due, when it is examined again.
    func isAbandoned(_ host: String, now: Double) -> Bool {
        guard !silent.isEmpty, let record = records[host],
            record.health.isAbandoned(waitLimit: silent.waitLimit, now: now)
        else { return false }
        schedule(record, host, at: max(now, record.health.holdUntil))
        return true
    }

    /// The error for a URL of a host that was given up; nil if it may be requested or still waits for probes.
    /// * `arrivedAt`: start of its wait.
    /// * `wasTried`: whether its own last try got no response.
    /// * `triesLeft`: with as many failed probes that stood for it, its tries are used up; nil: they do not count.
    func refusal(
        of host: String, arrivedAt: Double, wasTried: Bool, triesLeft: Int?, now: Double
    ) -> WebImageError? {
        if let triesLeft {
            let count = probes(of: host, standingForURLSince: arrivedAt, wasTried: wasTried, now: now)
            if count > 0, count >= triesLeft, let health = records[host]?.health,
                var error = health.lastError ?? health.cause
            {
                error.message = "\(count) \(count == 1 ? "probe" : "probes") of its host failed: \(error.message)"
                error.isTransient = false
                return error
            }
        }
        guard !silent.isEmpty, let health = records[host]?.health,
            health.isAbandoned(waitLimit: silent.waitLimit, now: now),
            health.isAbandoned(since: arrivedAt, wasTried: wasTried), let since = health.unresponsiveSince,
            var error = health.cause
        else { return nil }
        error.message = "the host has given no answer for \(Int(now - since)) s: \(error.message)"
        error.isTransient = false
        return error
    }

    /// How many probes of a host on hold stood for a URL that waits for it; 0 for another host.
    /// * `since`: start of its wait.
    /// * `wasTried`: whether its own last try got no response.
    func probes(of host: String, standingForURLSince since: Double, wasTried: Bool, now: Double) -> Int {
        guard let health = records[host]?.health, health.unresponsiveSince != nil || health.holdUntil > now else {
            return 0
        }
        return health.probes(standingForURLSince: since, wasTried: wasTried)
    }

    // MARK: Results of requests

    /// Who is to blame for a missing response.
    enum Blame {
        case unknown
        /// The host is on hold: the URL waits for it with others.
        case host
        /// The host answered other requests meanwhile.
        case url
    }

    /// Records that the host did not respond.
    /// * `wasReached`: whether the request was sent.
    /// * `isKnown`: whether the URL was to blame before.
    func didFail(
        _ host: String, _ error: WebImageError, wasReached: Bool, isKnown: Bool = false, began: Double, now: Double
    ) -> Blame {
        guard policy.failuresInARow != nil else { return .unknown }
        let record = self.record(of: host)
        if wasReached, record.health.unresponsiveSince == nil, isKnown || record.health.answeredAt > began {
            return .url
        }
        let limit = policy.failuresInARow
        if record.health.didFail(
            error, wasReached: wasReached, began: began, limit: limit, now: now, jitter: random())
        {
            tell(record.health, host, .silent, now)
            schedule(record, host, at: record.health.holdUntil)
        }
        guard let since = record.health.unresponsiveSince else { return .unknown }
        silent.insert(host, since: since)
        return now < since + silent.waitLimit ? .host : .unknown
    }

    /// Records a response.
    /// * `error`: for an unsuccessful status.
    /// * `isRetry`: whether its URL had been requested before.
    /// * `running`: running transfers to the host, including this one.
    /// * `maxWait`: maximum `Retry-After` to honour, in seconds.
    func didAnswer(
        _ host: String, _ error: WebImageError?, isRetry: Bool = false, firstByte: Double?, began: Double,
        running: Int, maxWait: Double, now: Double
    ) {
        let known = records[host]
        guard policy.backsOff || known != nil else { return }
        let record = known ?? self.record(of: host)
        let hadWindow = record.health.window != nil
        let isNews = record.health.didAnswer(
            error, isRetry: isRetry, firstByte: firstByte, began: began, running: running, backsOff: policy.backsOff,
            maxWait: maxWait, now: now, jitter: random())
        silent.remove(host)
        if isNews {
            let isHeld = record.health.holdUntil > now
            tell(record.health, host, isHeld ? .busy : .good, now)
            // Resumes the URLs that waited for its response.
            schedule(record, host, at: isHeld ? record.health.holdUntil : now)
        } else if hadWindow && record.health.window == nil {
            schedule(record, host, at: now)
        } else if isShared, let latency = record.health.slowness, let window = record.health.window.map({ Int($0) }),
            window < record.slow.window || record.slow.until < now + Self.slowFor / 2,
            news[host]?.state ?? .slow == .slow
        {
            record.slow = (window, now + Self.slowFor)
            news[host] = HostReport(
                host: host, state: .slow, until: record.slow.until, since: now, failures: window,
                latency: latency)
        }
        if records.count > Self.maxHosts { removeHealthy(now) }
    }

    /// How long other processes apply a published slowness, in seconds.
    private static let slowFor = 30.0

    private func removeHealthy(_ now: Double) {
        for (host, record) in records
        where record.health.isGood && record.clocks.allSatisfy({ $0.isUnused(now: now) }) {
            records[host] = nil
        }
    }

    private func tell(_ health: HostHealth, _ host: String, _ state: HostReport.State, _ now: Double) {
        guard isShared else { return }
        news[host] = HostReport(
            host: host, state: state, until: health.holdUntil, since: health.unresponsiveSince ?? now,
            failures: health.failures,
            error: (state == .silent ? health.cause : health.lastError) ?? WebImageError(.cannotConnectToHost, ""))
    }

    // MARK: Other processes

    /// Returns requests and reports, and marks them as sent.
    /// * `waiting`: number of waiting operations of a host that have a rate.
    func takeMessages(
        waiting: (_ host: String, _ rate: Double) -> Int
    ) -> (hostRequests: [HostSlotRequest], news: [HostReport]) {
        guard !wanting.isEmpty || !news.isEmpty else { return ([], []) }
        let hostRequests = wanting.compactMap { host, clock -> HostSlotRequest? in
            let count = min(clock.wanted, waiting(host, clock.rate))
            guard count > 0 else {
                clock.dropRequest()
                return nil
            }
            return HostSlotRequest(host: host, count: count, rate: clock.rate)
        }
        defer {
            wanting = []
            news = [:]
        }
        return (hostRequests, Array(news.values))
    }

    /// Handles the reply to a reservation request; nil: not granted now.
    func grant(_ request: HostSlotRequest, _ reservation: HostReservation?, now: Double) {
        let record = self.record(of: request.host)
        clock(request.rate, of: record, now).grant(reservation, now: now, random: random())
        record.wake = .infinity
        schedule(record, request.host, at: now)
    }

    /// Adopts the complete shared state: a host missing from it has responded to some process.
    func adopt(_ all: [HostReport], now: Double) {
        var known: Set<ByteText> = []
        for item in all where item.state == .silent || item.state == .busy {
            known.insert(item.host)
            let record = self.record(of: item.host)
            if item.state == .silent, record.health.unresponsiveSince == nil, record.health.answeredAt > item.since {
                // This process got a response that the others did not.
                tell(record.health, item.host, .good, now)
            } else if item.state == .silent ? policy.failuresInARow != nil : policy.backsOff {
                record.health.adopt(item)
                if let since = record.health.unresponsiveSince { silent.insert(item.host, since: since) }
                schedule(record, item.host, at: item.until)
            }
        }
        for (host, record) in records where news[host] == nil && !known.contains(host) {
            let isHeld = record.health.unresponsiveSince != nil || record.health.holdUntil > now
            guard isHeld else { continue }
            record.health.resetHealth()
            silent.remove(host.text)
            schedule(record, host.text, at: now)
        }
        for item in all where item.state == .slow && policy.backsOff { adoptSlow(item, now: now) }
    }

    /// Applies each publication once; this process also receives its own.
    private func adoptSlow(_ item: HostReport, now: Double) {
        guard item.until > now, let latency = item.latency else { return }
        let record = self.record(of: item.host)
        if item.until > record.slow.until + 0.5 || item.failures < record.slow.window {
            record.slow = (item.failures, item.until)
            record.health.adopt(latency, window: item.failures)
        }
    }

    /// Changes the policy. The state of hosts is kept, including back-off.
    func renew(_ policy: HostPolicy) {
        self.policy = policy
        silent.renew(policy)
        // No operation is waiting any more.
        wakes = Heap()
        for record in records.values { record.wake = .infinity }
    }

    // MARK: Time

    var nextWake: Double { min(wakes.min?.time ?? .infinity, silent.nextEnd) }

    func nextDue(now: Double) -> String? {
        if let host = silent.takeEnded(now: now) { return host }
        while let wake = wakes.min, wake.time <= now {
            wakes.removeMin()
            guard let record = records[wake.host], record.wake == wake.time else { continue }
            record.wake = .infinity
            return wake.host
        }
        return nil
    }

    /// Why requests to a host wait, and for how many more seconds; nil if not for a reason known here.
    /// * `rate`: of the waiting operations; nil: they have none.
    func reason(
        for host: String, rate: Double? = nil, now: Double
    ) -> (kind: HostWait.Reason, text: String, remaining: Double?)? {
        guard let record = records[host] else { return nil }
        let health = record.health
        let remaining = health.holdUntil > now ? health.holdUntil - now : nil
        if health.unresponsiveSince != nil {
            return (
                .silent, "\(health.failures) failures in a row: \(health.cause?.message ?? "no answer")", remaining
            )
        }
        if let remaining, let error = health.lastError {
            return (.backOff, error.message + (error.retryAfter == nil ? "" : " (Retry-After)"), remaining)
        }
        if let rate, let clock = record.clocks.first(where: { $0.rate == rate }),
            clock.isEmpty || record.wake < .infinity
        {
            return (.rate, "its rate, \(rate == rate.rounded() ? "\(Int(rate))" : "\(rate)")/s", nil)
        }
        return health.window.map { (.slow, "at most \(max(1, Int($0))) at once for now", nil) }
    }
}
