package import Redis
package import WebImage

extension PrefetchQueue {
    private static let reserve = script(PackageResources.RESERVE_lua)

    /// Reserves instants of several hosts: in the order of the wishes, nil where there are none now. Their times are seconds by the
    /// monotonic clock of this machine.
    package func reserve(_ wishes: [HostWish]) async throws(RedisError) -> [HostReservation?] {
        var arguments: [RedisArgument] = []
        for wish in wishes {
            let interval = RateSchedule.interval(wish.rate)
            let numbers = [interval * 1e6, Double(wish.count), RateSchedule.horizon(wish.rate) * 1e6]
            arguments.append(RedisArgument(Self.keyPart(wish.host)))
            arguments += numbers.map { RedisArgument(Int($0.rounded(.up))) }
        }
        let before = ImageDownloader.monotonicTime
        let reply = try await run(Self.reserve, arguments).array ?? []
        // Redis read its clock in between: never before the call, so that no instant comes too early, whatever held up the reply.
        let after = ImageDownloader.monotonicTime
        let now = after - before < 0.01 ? (before + after) / 2 : after
        return zip(wishes, reply).map { wish, value in
            guard let parts = value.array, parts.count == 2, let first = parts[0].int, let count = parts[1].int,
                first >= 0, count > 0
            else { return nil }
            return HostReservation(
                first: now + Double(first) / 1e6, interval: RateSchedule.interval(wish.rate), count: count)
        }
    }

    private static let share = script(PackageResources.SHARE_lua)

    /// How many transfers to each host a worker may have now, in the order of the wishes.
    package func share(_ wishes: [HostShareWish], worker: String) async throws(RedisError) -> [Int?] {
        var arguments = [RedisArgument(worker)]
        for wish in wishes {
            arguments.append(RedisArgument(Self.keyPart(wish.host)))
            arguments += [wish.limit, wish.running, wish.wanted].map { RedisArgument($0) }
        }
        return (try await run(Self.share, arguments).array ?? []).map(\.count)
    }

    private static let note = script(PackageResources.NOTE_lua)

    /// Tells all workers what one found out about hosts. Times of the news are seconds by this machine's monotonic clock.
    package func note(_ news: [HostNews]) async throws(RedisError) {
        guard !news.isEmpty else { return }
        let now = ImageDownloader.monotonicTime
        func milliseconds(_ seconds: Double) -> RedisArgument { RedisArgument(Int(max(0, seconds * 1000))) }
        var arguments: [RedisArgument] = []
        for item in news {
            arguments += [
                RedisArgument(Self.keyPart(item.host)), RedisArgument(item.state.rawValue),
                milliseconds(item.until - now), milliseconds(now - item.since), RedisArgument(item.failures),
                RedisArgument(item.error.code.rawValue), RedisArgument(String(item.error.message.prefix(200))),
            ]
        }
        _ = try await run(Self.note, arguments)
    }

    /// What all workers know of hosts that are not as they should be, as of one moment.
    package func troubledHosts() async throws(RedisError) -> [TroubledHost] {
        let reply = try await read(clockCommands + [["HGETALL", RedisArgument(keys.hosts)]])
        return Self.troubledHosts(reply[2].fields ?? [:], at: try Self.time(reply))
    }

    /// The entries of `hosts`, those that are asked again last first.
    static func troubledHosts(_ fields: [String: RedisValue], at: Int) -> [TroubledHost] {
        fields.compactMap { host, value in value.string.flatMap { TroubledHost(host: host, note: $0, now: at) } }
            .filter { $0.state != .slow || $0.remaining > 0 }
            .sorted { ($0.remaining, $0.host) > ($1.remaining, $1.host) }
    }

    /// Nothing that is no name is longer.
    private static func keyPart(_ host: String) -> String { String(host.prefix(300)) }
}

/// A host that gives no answer, asked to be left alone, or answers slowly.
package struct TroubledHost: Sendable, Equatable {
    package var host: String
    package var state: HostNews.State
    /// Seconds until it is asked again; negative where that is over.
    package var remaining: Double
    /// Seconds it has been so.
    package var elapsed: Double
    /// Failures in a row; of a slow one transfers at once of each worker.
    package var failures: Int
    package var code: WebImageError.Code
    package var reason: String

    /// Reads an entry of `hosts`; nil for what is none. `now`: milliseconds since 1970.
    package init?(host: String, note: String, now: Int) {
        let parts = note.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: false)
        guard parts.count == 6, let state = HostNews.State(rawValue: String(parts[0])),
            let until = Int(plausible: parts[1]), let since = Int(plausible: parts[2]),
            let failures = Int(plausible: parts[3]), let code = Int(plausible: parts[4])
        else { return nil }
        self.host = host
        self.state = state
        remaining = Double(until - now) / 1000
        elapsed = Double(max(0, now - since)) / 1000
        self.failures = max(0, failures)
        self.code = WebImageError.Code(rawValue: code)
        reason = String(parts[5])
    }

    /// Whether nobody asks it now.
    package var isLeftAlone: Bool { state != .slow && remaining > 0 }

    /// The same by this machine's monotonic clock.
    var news: HostNews {
        let now = ImageDownloader.monotonicTime
        return HostNews(
            host: host, state: state, until: now + remaining, since: now - elapsed, failures: failures,
            error: WebImageError(code, reason, isTransient: true))
    }
}
