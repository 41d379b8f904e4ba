package import Redis
package import WebImage

extension PrefetchQueue {
    // RESERVE: instants at which requests to hosts may begin, for one worker alone. An instant that nobody uses is lost.
    // ARGV: for each host its name, microseconds between two instants, how many are wanted, microseconds ahead up to which there are any.
    // Result: for each host {microseconds from now to the first, how many}; {-1, 0} where all up to there are others'. Nothing within two
    // seconds of the server's start: what it forgot may still be in use. Again: other instants, those of the lost reply are nobody's.
    // Cost: O(hosts).
    private static let reserve = script(
        "RESERVE",
        #"""
        local at = now() * 1000 + look().us
        local ok, info = pcall(redis.call, 'INFO', 'server')
        local uptime = ok and type(info) == 'string' and tonumber(info:match('uptime_in_seconds:(%d+)')) or 2
        local out = {}
        for i = 1, #ARGV, 4 do
          local key, interval = K .. ':rate:' .. ARGV[i], tonumber(ARGV[i + 1])
          local first = math.max(tonumber(redis.call('GET', key) or '0'), at)
          local n = math.min(tonumber(ARGV[i + 2]), math.ceil((at + tonumber(ARGV[i + 3]) - first) / interval))
          if n < 1 or uptime < 2 then
            out[#out + 1] = {-1, 0}
          else
            local after = first + n * interval
            redis.call('SET', key, string.format('%.0f', after), 'PX', math.ceil((after - at) / 1000) + 10000)
            out[#out + 1] = {string.format('%.0f', first - at), n}
          end
        end
        return out
        """#)

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

    // SHARE: how many transfers to each host a worker may have, of so many that all workers together may.
    // ARGV: worker, then for each host its name, the limit, transfers the worker has, and how many it could have. Result: for each host how
    // many are its part; less than it has where others want theirs, and then it begins no more until it has fewer. Of a worker that is not
    // registered any more nothing counts. Again: the same. Cost: O(hosts x workers that have or want some of them).
    private static let share = script(
        "SHARE",
        #"""
        local out, worker = {}, ARGV[1]
        for i = 2, #ARGV, 4 do
          local key, limit = K .. ':conns:' .. ARGV[i], tonumber(ARGV[i + 1])
          local held, wanted = tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
          local all = redis.pcall('HGETALL', key)
          if all.err then redis.call('DEL', key) all = {} end
          local others, claims, parts, isShort = 0, {wanted}, {}, false
          for j = 1, #all, 2 do
            if all[j] ~= worker then
              local has, wants = all[j + 1]:match('^(%d+) (%d+)$')
              if has and redis.call('ZSCORE', K .. ':workers', all[j]) then
                others = others + has
                claims[#claims + 1] = tonumber(wants)
                parts[#parts + 1] = tonumber(has)
                if tonumber(wants) > tonumber(has) then isShort = true end
              else
                redis.call('HDEL', key, all[j])
              end
            end
          end
          local most = limit - others
          if isShort then
            -- Equal parts, but for who wants less, and leaves the rest to the others; what does not divide is for who asks first.
            table.sort(claims)
            local rest, level, open = limit, 0, #claims
            for _, wants in ipairs(claims) do
              level = math.floor(rest / open)
              if wants > level then break end
              rest, open = rest - wants, open - 1
            end
            local over = rest - level * open
            for _, has in ipairs(parts) do over = over - math.max(0, has - level) end
            most = math.min(most, math.max(1, level) + (level > 0 and math.max(0, over) or 0))
          end
          local granted = math.max(0, math.min(wanted, most))
          if held + wanted > 0 then
            redis.call('HSET', key, worker, string.format('%d %d', math.max(held, granted), wanted))
            redis.call('EXPIRE', key, 60)
          else
            redis.call('HDEL', key, worker)
          end
          out[#out + 1] = granted
        end
        return out
        """#)

    /// How many transfers to each host a worker may have now, in the order of the wishes.
    package func share(_ wishes: [HostShareWish], worker: String) async throws(RedisError) -> [Int?] {
        var arguments = [RedisArgument(worker)]
        for wish in wishes {
            arguments.append(RedisArgument(Self.keyPart(wish.host)))
            arguments += [wish.limit, wish.running, wish.wanted].map { RedisArgument($0) }
        }
        return (try await run(Self.share, arguments).array ?? []).map(\.count)
    }

    // NOTE: what a worker found out about hosts, for all.
    // ARGV: for each host its name, `silent`, `busy`, `slow` or `good`, milliseconds from now until which nothing begins, since when it is so,
    // failures in a row, code of the last error, its sentence. Result: 1. A host that is good is taken out; slow is
    // less than what is said of it already and still holds (of a slow one the failures are transfers at once); of those beyond 1,000 the ones
    // whose time is long over go. `#v` counts the changes: the beat tells it to all. Again: the same, and told once more.
    // Cost: O(hosts).
    private static let note = script(
        "NOTE",
        #"""
        local key, t = K .. ':hosts', now()
        local function holds(note)
          local state, till = (note or ''):match('^(%a+) (%d+) ')
          return state and state ~= 'slow' and tonumber(till) > t
        end
        for i = 1, #ARGV, 7 do
          if ARGV[i + 1] == 'good' then
            redis.call('HDEL', key, ARGV[i])
          elseif ARGV[i + 1] ~= 'slow' or not holds(redis.call('HGET', key, ARGV[i])) then
            redis.call('HSET', key, ARGV[i], table.concat({ARGV[i + 1], t + tonumber(ARGV[i + 2]), t - tonumber(ARGV[i + 3]),
              ARGV[i + 4], ARGV[i + 5], ARGV[i + 6]}, ' '))
          end
        end
        if redis.call('HLEN', key) > 1000 then
          local all = redis.call('HGETALL', key)
          for i = 1, #all, 2 do
            local till = tonumber(all[i + 1]:match('^%a+ (%d+) '))
            if all[i] ~= '#v' and (not till or till + 120000 < t) then redis.call('HDEL', key, all[i]) end
          end
        end
        redis.call('HINCRBY', key, '#v', 1)
        redis.call('EXPIRE', key, 3600)
        return 1
        """#)

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
