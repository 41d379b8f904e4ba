package import Redis
internal import Threading

/// Knowledge about hosts and sites that workers share, and their request counts.
package struct QueueHosts: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    private static let reserve = QueueScript.script(PackageResources.RESERVE_lua)

    /// Reserves request instants of hosts, in the order of `hostRequests`; nil if there are none now. Seconds of this machine's monotonic clock.
    package func reserve(_ hostRequests: [HostSlotRequest]) async throws(RedisError) -> [HostReservation?] {
        var arguments: [RedisArgument] = []
        for wish in hostRequests {
            let interval = RateSchedule.interval(wish.rate)
            let numbers = [interval * 1e6, Double(wish.count), RateSchedule.horizon(wish.rate) * 1e6]
            arguments.append(RedisArgument(Self.keyPart(wish.host)))
            arguments += numbers.map { RedisArgument(Int($0.rounded(.up))) }
        }
        let before = MonotonicClock.now
        let reply = try await redis.run(Self.reserve, arguments).array ?? []
        // Redis read its clock in between: never before the call, so that no instant comes too early, whatever delayed the reply.
        let after = MonotonicClock.now
        let now = after - before < 0.01 ? (before + after) / 2 : after
        return zip(hostRequests, reply).map { wish, value in
            guard let parts = value.array, parts.count == 2, let first = parts[0].int, let count = parts[1].int,
                first >= 0, count > 0
            else { return nil }
            return HostReservation(
                first: now + Double(first) / 1e6, interval: RateSchedule.interval(wish.rate), count: count)
        }
    }

    private static let share = QueueScript.script(PackageResources.SHARE_lua)

    /// How many transfers to each host a worker may have now, in the order of `hostRequests`.
    package func share(_ hostRequests: [HostShareRequest], worker: String) async throws(RedisError) -> [Int?] {
        var arguments = [RedisArgument(worker)]
        for wish in hostRequests {
            arguments.append(RedisArgument(Self.keyPart(wish.host)))
            arguments += [wish.limit, wish.running, wish.wanted].map { RedisArgument($0) }
        }
        return (try await redis.run(Self.share, arguments).array ?? []).map(\.count)
    }

    private static let note = QueueScript.script(PackageResources.NOTE_lua)

    /// Shares one worker's findings about hosts with all. Times are seconds by this machine's monotonic clock.
    package func note(_ news: [HostReport]) async throws(RedisError) {
        guard !news.isEmpty else { return }
        let now = MonotonicClock.now
        func milliseconds(_ seconds: Double) -> RedisArgument { RedisArgument(Int(max(0, seconds * 1000))) }
        var arguments: [RedisArgument] = []
        for item in news {
            let latency = item.latency?.fields
            arguments += [
                RedisArgument(Self.keyPart(item.host)), RedisArgument(item.state.rawValue),
                milliseconds(item.until - now), milliseconds(now - item.since), RedisArgument(item.failures),
                RedisArgument(latency?.now ?? item.error?.code.rawValue ?? 0),
                RedisArgument(latency.map { String($0.best) } ?? String((item.error?.message ?? "").prefix(200))),
            ]
        }
        _ = try await redis.run(Self.note, arguments)
    }

    package func troubled() async throws(RedisError) -> [HostProblem] {
        let reply = try await redis.read(redis.clockCommands + [["HGETALL", RedisArgument(redis.keys.hosts)]])
        return Self.troubled(reply[2].pairs ?? [], at: try ScriptRunner.time(reply))
    }

    /// The entries of `hosts`, longest back-off first.
    static func troubled(_ pairs: [(name: String, value: RedisValue)], at: Int) -> [HostProblem] {
        pairs.compactMap { host, value in value.string.flatMap { HostProblem(host: host, note: $0, now: at) } }
            .filter { $0.state != .slow || $0.remaining > 0 }
            .sorted { ($0.remaining, $0.host) > ($1.remaining, $1.host) }
    }

    /// Host names are not longer.
    private static func keyPart(_ host: String) -> String { String(host.unicodeScalars.prefix(300)) }

    private static let askRobots = QueueScript.script(PackageResources.ROBOTS_lua)

    /// Stored robots.txt rules, in the order of the sites.
    package func robots(of sites: [RobotsSite], worker: String) async throws(RedisError) -> [RobotsAnswer] {
        let reply =
            try await redis.run(
                Self.askRobots, [RedisArgument(worker)] + sites.map { RedisArgument(Self.keyPart($0)) }
            ).array ?? []
        return reply.map { value in
            guard let parts = value.array, parts.count == 2, let text = parts[0].string, let left = parts[1].int else {
                return .ask
            }
            switch text {
            case "": return .ask
            case "?": return .wait
            default: return .known(text: text, remaining: Double(max(0, left)) / 1000)
            }
        }
    }

    private static let storeRobotsScript = QueueScript.script(PackageResources.PAGES_lua)

    /// Stores robots.txt read by one worker, for all.
    package func noteRobots(_ notes: [RobotsCopy]) async throws(RedisError) {
        var arguments: [RedisArgument] = []
        for note in notes {
            arguments += [
                RedisArgument(Self.keyPart(note.site)), RedisArgument(note.text),
                RedisArgument(max(1, Int(note.lifetime * 1000))),
            ]
        }
        _ = try await redis.run(Self.storeRobotsScript, arguments)
    }

    private static func keyPart(_ site: RobotsSite) -> String {
        "\(String(site.agent.unicodeScalars.prefix(64)).asciiLowercased) \(keyPart(site.site))"
    }

    private static let askWitnesses = QueueScript.script(PackageResources.WITNESSES_lua)

    /// An image that a worker has fetched, by which another can tell whether its own network works.
    package struct Witness: Sendable, Equatable {
        package var url: String
        /// Requests per second that its host may be sent; nil: no limit.
        package var rate: Double?
        /// Milliseconds since it was fetched.
        package var age = 0

        package init(url: String, rate: Double? = nil) {
            (self.url, self.rate) = (url, rate)
        }

        fileprivate init?(note: String, age: Int) {
            let words = note.split(atByte: " ", maxSplits: 1)
            guard words.count == 2 else { return nil }
            self.init(url: String(words[1]), rate: Double(words[0]).flatMap { $0 > 0 && $0 < 1e6 ? $0 : nil })
            self.age = age
        }

        fileprivate var note: String { "\(rate.map { String($0) } ?? "-") \(url)" }
    }

    /// Longer URLs are no witnesses.
    private static let longestWitness = 2_048

    /// Tells other workers of images fetched here; returns how many workers are registered, and such images of the last minute, newest
    /// first.
    package func witnesses(
        adding own: [Witness] = [], most: Int = 16
    ) async throws(RedisError) -> (workers: Int, witnesses: [Witness]) {
        let notes = own.filter { $0.url.utf8.count <= Self.longestWitness }.map { RedisArgument($0.note) }
        let reply = try await redis.run(Self.askWitnesses, [RedisArgument(most)] + notes).array ?? []
        let found = reply.dropFirst().compactMap { value -> Witness? in
            guard let parts = value.array, parts.count == 2, let note = parts[0].string, let age = parts[1].int else {
                return nil
            }
            return Witness(note: note, age: age)
        }
        return (reply.first?.int ?? 0, found)
    }

    private static let failure = QueueScript.script(PackageResources.FAILURE_lua)

    /// How a download ended that other processes waited for, a moment ago; nil: that is not known.
    /// * `question`: a digest of what was asked for, and how.
    /// * `error`: how it ended, to tell others; nil: only asks.
    @discardableResult
    package func failure(
        of question: String, telling error: WebImageError? = nil
    ) async throws(RedisError) -> WebImageError? {
        let arguments = [RedisArgument(question), RedisArgument(error?.note ?? "")]
        return try await redis.run(Self.failure, arguments).string.flatMap { WebImageError(note: $0) }
    }

    private static let tallyHosts = QueueScript.script(PackageResources.HOSTS_lua)

    /// Adds a worker's request counts.
    /// * `token`: unique per tally: sent again after a lost reply, it adds nothing.
    package func tally(_ hosts: HostTally, worker: String, token: String) async throws(RedisError) {
        try await tally(hosts.encoded, worker: worker, token: token)
    }

    func tally(
        _ lines: [(batch: String, lines: String)], worker: String, token: String
    ) async throws(RedisError) {
        var arguments = [RedisArgument(worker), RedisArgument(token)]
        for (batch, lines) in lines { arguments += [RedisArgument(batch), RedisArgument(lines)] }
        _ = try await redis.run(Self.tallyHosts, arguments)
    }
}
