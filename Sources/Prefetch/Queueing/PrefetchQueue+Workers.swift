package import Redis

extension PrefetchQueue {
    // JOIN: a worker registers. What somebody of this name has left behind without a registration goes back to the lists.
    // ARGV: worker, lease in ms, fields and values about it. Result: 1, or 0 where the name is taken. Cost: O(log workers), and what
    // was left behind.
    private static let join = script(
        "JOIN",
        #"""
        tick()
        local joined = redis.call('ZADD', K .. ':workers', 'NX', now() + tonumber(ARGV[2]), ARGV[1])
        if joined == 1 then
          local left = redis.call('HGETALL', own(ARGV[1]))
          redis.call('DEL', K .. ':w:' .. ARGV[1], own(ARGV[1]))
          for i = 1, #left, 2 do
            if left[i]:sub(1, 1) ~= '#' then pcall(giveBack, left[i], left[i + 1]) end
          end
          redis.call('HSET', K .. ':w:' .. ARGV[1], 'since', now(), 'state', 'running', 'lease', ARGV[2], unpack(ARGV, 3))
        end
        return joined
        """#)

    /// Registers a worker under a name that no other has; false where it is taken.
    package func join(worker: String, lease: Int, about: [(String, String)]) async throws(RedisError) -> Bool {
        var arguments: [RedisArgument] = [RedisArgument(worker), RedisArgument(lease)]
        for (name, value) in about { arguments += [RedisArgument(name), RedisArgument(value)] }
        return try await run(Self.join, arguments).int == 1
    }

    // BEAT: the worker is alive; its lease begins anew, also where it had run out but nobody took its jobs.
    // ARGV: worker, lease in ms, "1" where its own last call took over a third of the lease (Redis stalled, so other leases are
    // late for the same reason: nobody is reaped for two leases, and then for two leases there is no other hold), number of batches, batches (batch@nonce), the sequence number of
    // its last claim whose reply it has read ("": it does not say what it has), number of claims it has, claims, fields and values about it.
    // Result: {LOST} or {OK, {name, value …}, {state, paused} of each batch, gone where a later one has its name}, as they are once those whose deadline has
    // passed are ended. The names are orders to the worker: `paused` and `wanted`
    // (transfers in flight) to itself, `queue_paused` and `concurrency` to all, `hosts` (changes of what is known of hosts), `unlisted` (failed
    // URLs that went since there are more than their list may have); one that is not there was not given. A worker passes
    // over names that it does not know. A claim that it does not name would never be reported: it is noted in the field `#unheld`, and
    // goes back without blame where the next beat does not name it either. Of the failed URLs at most 200 that have lapsed, or are too many, go.
    // Cost: O(log workers + batches + claims), and what goes.
    private static let beat = script(
        "BEAT",
        #"""
        tick()
        if not redis.call('ZSCORE', K .. ':workers', ARGV[1]) then return {'LOST'} end
        local lease, n = tonumber(ARGV[2]), tonumber(ARGV[4])
        -- No hold for two leases after one: a worker whose beats are always slow, on a busy machine, would put off every reclaim for ever.
        if ARGV[3] == '1' and number(redis.call('GET', K .. ':hold'), 0) + 2 * lease <= now() then
          redis.call('SET', K .. ':hold', now() + 2 * lease, 'PX', 4 * lease)
        end
        redis.call('ZADD', K .. ':workers', 'XX', now() + lease, ARGV[1])
        endDue()
        local said, claims = ARGV[5 + n], tonumber(ARGV[6 + n])
        local about = 7 + n + claims
        if ARGV[about] then redis.call('HSET', K .. ':w:' .. ARGV[1], 'beat', now(), unpack(ARGV, about)) end
        -- Only a worker that says what it has can be held to it.
        local function compare()
          local last = redis.call('HMGET', own(ARGV[1]), '#seq', '#jobs', '#unheld')
          local has, before, missing = {}, {}, {}
          for i = 7 + n, about - 1 do has[ARGV[i]] = true end
          -- The reply to its last claim may be on its way.
          if last[1] and last[1] ~= said then for name in last[2]:gmatch('%S+') do has[name] = true end end
          for name in (last[3] or ''):gmatch('%S+') do before[name] = true end
          for _, name in ipairs(redis.call('HKEYS', own(ARGV[1]))) do
            if name:sub(1, 1) ~= '#' and not has[name] then
              if before[name] then
                local payload = redis.call('HGET', own(ARGV[1]), name)
                redis.call('HDEL', own(ARGV[1]), name)
                pcall(giveBack, name, payload)
              else
                missing[#missing + 1] = name
              end
            end
          end
          if #missing > 0 then redis.call('HSET', own(ARGV[1]), '#unheld', table.concat(missing, ' '))
          elseif last[3] then redis.call('HDEL', own(ARGV[1]), '#unheld') end
        end
        if said ~= '' then pcall(compare) end
        -- The list of failed URLs is no worker's: where it is broken the beat counts all the same.
        pcall(sweepListed, 200)
        local orders = {}
        local function order(name, value)
          if value then
            orders[#orders + 1] = name
            orders[#orders + 1] = value
          end
        end
        local own = redis.call('HMGET', K .. ':w:' .. ARGV[1], 'paused', 'wanted')
        local all = redis.call('MGET', K .. ':paused', K .. ':concurrency')
        order('paused', own[1])
        order('wanted', own[2])
        order('queue_paused', all[1])
        order('concurrency', all[2])
        order('hosts', redis.call('HGET', K .. ':hosts', '#v'))
        local unlisted = redis.pcall('HGET', K .. ':failed:limit', 'removed')
        if type(unlisted) == 'string' then order('unlisted', unlisted) end
        local out = {'OK', orders}
        for i = 5, 4 + n do
          local id, nonce = ARGV[i]:match('^([^@]*)@(.*)$')
          local m = redis.pcall('HMGET', batch(id), 'state', 'paused', 'nonce')
          -- Of a batch whose hash is none nothing is known, and the others are to be told.
          if m.err then out[#out + 1] = {'running', '0'}
          else out[#out + 1] = {(m[3] or '') == nonce and m[1] or 'gone', m[2] or '0'} end
        end
        return out
        """#)

    /// What a worker is told with each sign of life.
    package struct WorkerOrders: Sendable, Equatable {
        /// A batch of its jobs.
        package struct Batch: Sendable, Equatable {
            /// What became of it: `running`, `done`, `cancelled`, or `gone`.
            package var state: String
            /// Whether nothing more of it is to begin.
            package var isPaused = false
        }

        /// Whether it is to claim nothing, and to begin nothing.
        package var isWorkerPaused = false
        /// Whether nobody is.
        package var isQueuePaused = false
        /// Transfers in flight, said to it alone, and said to all.
        package var ownConcurrency: Int?, queueConcurrency: Int?
        /// How often what is known of hosts has changed; nil: nothing is known.
        package var hostsVersion: Int?
        /// How many failed URLs have gone since there are more than their list may have; nil: none.
        package var unlisted: Int?
        /// The batches it asked about, in the same order.
        package var batches: [Batch] = []
    }

    /// What a worker has claimed, as far as it knows.
    package struct KnownClaims: Sendable {
        /// The number of its last claim whose reply it has read.
        package var sequence: Int
        /// Names of claims.
        package var names: [String]

        package init(sequence: Int, names: [String]) {
            (self.sequence, self.names) = (sequence, names)
        }
    }

    /// Renews a lease. Returns what the worker is to do, and what became of the batches it asks about; nil where it is no longer
    /// registered.
    /// * `claims`: what it has claimed; what else stands under its name at two heartbeats in a row goes back. nil: it does not say.
    package func beat(
        worker: String, lease: Int, trouble: Bool, batches: [BatchIdentity], claims: KnownClaims? = nil,
        about: [(String, String)]
    ) async throws(RedisError) -> WorkerOrders? {
        var arguments: [RedisArgument] = [
            RedisArgument(worker), RedisArgument(lease), trouble ? "1" : "0", RedisArgument(batches.count),
        ]
        arguments += batches.map { RedisArgument($0.text) }
        arguments += [RedisArgument(claims.map { String($0.sequence) } ?? ""), RedisArgument(claims?.names.count ?? 0)]
        arguments += (claims?.names ?? []).map { RedisArgument($0) }
        for (name, value) in about { arguments += [RedisArgument(name), RedisArgument(value)] }
        let reply = try await run(Self.beat, arguments).array ?? []
        guard reply.first?.string == "OK", reply.count > 1 else { return nil }
        let named = reply[1].fields ?? [:]
        func number(_ name: String) -> Int? {
            named[name]?.int.flatMap { Self.concurrencyRange.contains($0) ? $0 : nil }
        }
        return WorkerOrders(
            isWorkerPaused: named["paused"]?.string == "1", isQueuePaused: named["queue_paused"] != nil,
            ownConcurrency: number("wanted"), queueConcurrency: number("concurrency"),
            hostsVersion: named["hosts"]?.int, unlisted: named["unlisted"]?.count,
            batches: reply.dropFirst(2).map { value in
                let words = value.array ?? []
                return WorkerOrders.Batch(
                    state: words.first?.string ?? "gone", isPaused: words.last?.string == "1")
            })
    }

    /// What a look for dead workers found.
    package enum ReapResult: Sendable, Equatable {
        /// Nobody's lease has run out, or nobody may be reaped now.
        case nobody
        /// So many jobs of this worker went back to their lists.
        case reaped(worker: String, jobs: Int)
    }

    // REAP: the jobs of a worker whose lease has run out, or ends later than two leases from now, go back to the front of their lists, and each counts one more delivery. A batch
    // that was held by a repair which has died is let go; a batch with a key of a wrong type loses the job, and no other does.
    // ARGV: worker the caller knows to be dead, whatever its lease says ("" = whose lease ran out first), most jobs.
    // Result: {} or {worker, jobs put back}. Again: goes on where it stopped. Cost: O(jobs), at most the number given.
    private static let reap = script(
        "REAP",
        #"""
        tick()
        local worker = ARGV[1]
        local held, t = redis.call('HGETALL', K .. ':held'), now()
        for i = 1, #held, 2 do
          if tonumber(held[i + 1]) < t then
            redis.call('HDEL', K .. ':held', held[i])
            pcall(function() if redis.call('LLEN', jobs(held[i])) > 0 then ready(held[i]) end end)
          end
        end
        if worker == '' then
          -- By its end, not by its expiry: that goes by Redis' own clock.
          if tonumber(redis.call('GET', K .. ':hold') or '0') > now() then return {} end
          worker = redis.call('ZRANGE', K .. ':workers', '-inf', now(), 'BYSCORE', 'LIMIT', 0, 1)[1]
          if not worker then
            -- No lease ends so late: somebody wrote it, or the queue's clock was lost.
            local last = redis.call('ZRANGE', K .. ':workers', 0, 0, 'REV', 'WITHSCORES')
            local lease = last[1] and tonumber(redis.call('HGET', K .. ':w:' .. last[1], 'lease') or '')
            if not lease or tonumber(last[2]) <= now() + 2 * lease then return {} end
            worker = last[1]
          end
        end
        local all, n = redis.call('HGETALL', own(worker)), 0
        local marked = redis.call('HGET', own(worker), '#mark')
        for i = 1, #all, 2 do
          local name = all[i]
          if name:sub(1, 1) ~= '#' then
            local id, job = parts(name), jobOf(name)
            redis.call('HDEL', own(worker), name)
            pcall(function()
              if not giveBack(name, all[i + 1]) then return end
              redis.call('HINCRBY', tries(id), job, 1)
              if marked == name then redis.call('HINCRBY', tries(id), job .. '!', 1) end
              n = n + 1
            end)
            if n >= tonumber(ARGV[2]) then
              redis.call('HINCRBY', K .. ':w:' .. worker, 'returned', n)
              return {worker, n}
            end
          end
        end
        if n > 0 then redis.call('HINCRBY', K .. ':w:' .. worker, 'returned', n) end
        redis.call('DEL', own(worker))
        redis.call('ZREM', K .. ':workers', worker)
        redis.call('HSET', K .. ':w:' .. worker, 'state', 'lost', 'ended', now())
        redis.call('EXPIRE', K .. ':w:' .. worker, 86400)
        return {worker, n}
        """#)

    /// Takes the jobs of one dead worker back.
    /// * `worker`: nil: whose lease ran out first. Named: this one, whatever its lease says.
    package func reap(worker: String? = nil, most: Int = 64) async throws(RedisError) -> ReapResult {
        let reply =
            try await run(
                Self.reap, [RedisArgument(worker ?? ""), RedisArgument(most)]
            ).array ?? []
        guard reply.count == 2, let name = reply[0].string else { return .nobody }
        return .reaped(worker: name, jobs: reply[1].int ?? 0)
    }

    // RELEASE: a worker gives jobs back without blame (SIGTERM, a full disk).
    // ARGV: worker, "1" where it leaves for good, claims (none = all). Result: jobs put back. Again: nothing more.
    private static let release = script(
        "RELEASE",
        #"""
        local worker, n = ARGV[1], 0
        local names = {unpack(ARGV, 3)}
        if #names == 0 then names = redis.call('HKEYS', own(worker)) end
        for _, name in ipairs(names) do
          if name:sub(1, 1) ~= '#' then
            local payload = redis.call('HGET', own(worker), name)
            if payload then
              redis.call('HDEL', own(worker), name)
              pcall(giveBack, name, payload)
              n = n + 1
            end
          end
        end
        if ARGV[2] == '1' then
          redis.call('DEL', own(worker))
          redis.call('ZREM', K .. ':workers', worker)
          redis.call('HSET', K .. ':w:' .. worker, 'state', 'left', 'ended', now())
          redis.call('EXPIRE', K .. ':w:' .. worker, 86400)
        end
        return n
        """#)

    /// Gives jobs back: those of the named claims, or all. With `leaving` the registration ends too.
    @discardableResult
    package func release(worker: String, jobs: [String] = [], leaving: Bool) async throws(RedisError) -> Int {
        try await run(
            Self.release, [RedisArgument(worker), leaving ? "1" : "0"] + jobs.map { RedisArgument($0) }
        ).int ?? 0
    }

    /// The registered workers, whose lease ends first in front.
    package func workers() async throws(RedisError) -> [String] {
        (try await read([["ZRANGE", RedisArgument(keys.workers), "0", "-1"]])[0].get().array ?? []).compactMap(\.string)
    }
}
