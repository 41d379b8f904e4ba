internal import Redis

/// The steps by which one batch is made true again (``BatchRepair``). One repair at a time has a batch: it names itself with a token, and
/// whoever comes while it gives signs of life is told so. Every step may be sent again, and workers go on meanwhile.
extension PrefetchQueue {
    static func step(_ name: String, allowsOOM: Bool = true, _ body: String) -> RedisScript {
        script(
            name, allowsOOM: allowsOOM,
            #"""
            local id, token = ARGV[1], ARGV[2]
            -- Whether the repair is still this caller's; it is for another minute then.
            local function mine()
              local held = redis.call('HGET', batch(id), 'repair')
              if not held or held:sub(1, #token + 1) ~= token .. ' ' then return false end
              redis.call('HSET', batch(id), 'repair', token .. ' ' .. (now() + 60000))
              return true
            end
            """# + "\n" + body)
    }

    /// Whether a repair may begin.
    enum RepairTaking: Sendable, Equatable {
        case taken
        /// Another repair of this batch is under way.
        case busy
        /// Redis knows no such batch.
        case gone
    }

    // TAKE: a repair of a batch begins.
    // ARGV: batch, token. Result: OK, BUSY or GONE. A state that does not exist becomes `running`. Again: OK. Cost: O(1).
    private static let take = step(
        "TAKE",
        #"""
        if redis.call('EXISTS', batch(id)) == 0 then return 'GONE' end
        local m = redis.call('HMGET', batch(id), 'repair', 'state')
        local owner, ends = (m[1] or ''):match('^(%S+) (%d+)$')
        if owner and owner ~= token and tonumber(ends) > now() then return 'BUSY' end
        redis.call('HSET', batch(id), 'repair', token .. ' ' .. (now() + 60000))
        redis.call('HDEL', batch(id), 'broken', 'filled')
        if m[2] ~= 'running' and m[2] ~= 'done' and m[2] ~= 'cancelled' then redis.call('HSET', batch(id), 'state', 'running') end
        return 'OK'
        """#)

    func takeForRepair(_ batch: String, token: String) async throws(RedisError) -> RepairTaking {
        switch try await run(Self.take, [RedisArgument(batch), RedisArgument(token)]).string {
        case "OK": .taken
        case "BUSY": .busy
        default: .gone
        }
    }

    // RECOUNT: counts a piece of the outcomes into the fields r1 … r31, which REPORT adds to from then on. Bytes that are no outcome,
    // and those beyond the list, become open.
    // ARGV: batch, token, first index, number, URLs of the list. Result: {OK, bytes seen, bytes made open, last index with an outcome
    // and 1, or 0}, or {AT, index to go on from}, or {LOST}. From index 0: begins anew. Cost: O(number).
    private static let recount = step(
        "RECOUNT",
        #"""
        if not mine() then return {'LOST'} end
        local from, n, limit = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
        if from == 0 then
          for code = 1, 31 do redis.call('HDEL', batch(id), 'r' .. code) end
        else
          local at = redis.call('HGET', batch(id), 'recount')
          if at ~= ARGV[3] then return {'AT', at or '0'} end
        end
        local bytes = redis.call('GETRANGE', outcomes(id), from, from + n - 1)
        local count, wrong, last = {}, 0, 0
        for i = 1, #bytes do
          local code = bytes:byte(i)
          if code > 31 or (code ~= 0 and from + i > limit) then
            redis.call('SETRANGE', outcomes(id), from + i - 1, '\0')
            wrong = wrong + 1
          elseif code ~= 0 then
            count[code] = (count[code] or 0) + 1
            last = from + i
          end
        end
        for code, c in pairs(count) do redis.call('HINCRBY', batch(id), 'r' .. code, c) end
        redis.call('HSET', batch(id), 'recount', from + n)
        return {'OK', tostring(#bytes), tostring(wrong), tostring(last)}
        """#)

    /// Counts all outcomes anew, piece by piece; ``tally(_:token:)`` makes the counts theirs. Returns how many bytes were no outcome, and
    /// the first index behind all outcomes; nil where the repair is no longer this one's.
    /// * `limit`: URLs of the list.
    func recount(_ batch: String, token: String, limit: Int) async throws(RedisError) -> (wrong: Int, end: Int)? {
        var (from, wrong, end) = (0, 0, 0)
        while true {
            let reply = try await recountPiece(batch, token: token, from: from, limit: limit)
            let numbers = reply.dropFirst().map { Int(plausible: $0) ?? 0 }
            switch reply.first {
            case "OK":
                wrong += numbers[1]
                end = max(end, numbers[2])
                if numbers[0] < Self.piece { return (wrong, end) }
                from += Self.piece
            // The reply of the call before was lost.
            case "AT": from = numbers[0]
            default: return nil
            }
        }
    }

    private static let piece = 1 << 16

    /// One piece of ``recount(_:token:limit:)``: what Redis says of it.
    func recountPiece(_ batch: String, token: String, from: Int, limit: Int) async throws(RedisError) -> [String] {
        let arguments = [
            RedisArgument(batch), RedisArgument(token), RedisArgument(from), RedisArgument(Self.piece),
            RedisArgument(limit),
        ]
        return (try await run(Self.recount, arguments).array ?? []).compactMap(\.string)
    }

    // TALLY: the counts of a batch become those RECOUNT has found; what the workers' sums lack goes to a worker called `repair`, what they
    // have too much is taken off. A batch that is done and has open URLs runs again, unless a retry stands on it.
    // ARGV: batch, token. Result: {name, old, new …} of what has changed. Again: nothing more. Cost: O(workers).
    private static let tally = step(
        "TALLY",
        #"""
        if not mine() or redis.call('HEXISTS', batch(id), 'recount') == 0 then return {} end
        local out, finished, skipped, sums, workers = {}, 0, 0, {}, redis.call('HGETALL', counts(id))
        local function set(name, value)
          local old = redis.call('HGET', batch(id), name) or '0'
          if tonumber(old) == value then return end
          redis.call('HSET', batch(id), name, value)
          for _, word in ipairs({name, old, tostring(value)}) do out[#out + 1] = word end
        end
        for i = 1, #workers, 2 do
          local what = workers[i]:match(':([^:]+)$') or ''
          sums[what] = (sums[what] or 0) + (tonumber(workers[i + 1]) or 0)
        end
        local function level(what, wanted)
          local missing = wanted - (sums[what] or 0)
          if missing > 0 then redis.call('HINCRBY', counts(id), 'repair:' .. what, missing) end
          for i = 1, #workers, 2 do
            local has = tonumber(workers[i + 1]) or 0
            if missing < 0 and workers[i]:match(':([^:]+)$') == what then
              local less = math.min(has, -missing)
              missing = missing + less
              if less == has then redis.call('HDEL', counts(id), workers[i])
              else redis.call('HSET', counts(id), workers[i], has - less) end
            end
          end
          if wanted ~= (sums[what] or 0) then
            for _, word in ipairs({'workers:' .. what, tostring(sums[what] or 0), tostring(wanted)}) do out[#out + 1] = word end
          end
        end
        for code = 1, 31 do
          local n = tonumber(redis.call('HGET', batch(id), 'r' .. code) or '0')
          finished = finished + n
          if code > 3 then skipped = skipped + n end
          set('o' .. code, n)
          level(tostring(code), n)
        end
        set('finished', finished)
        set('skipped', skipped)
        local bytes = tonumber(redis.call('HGET', batch(id), 'bytes') or '0')
        if bytes < (sums.bytes or 0) then set('bytes', sums.bytes) else level('bytes', bytes) end
        for code = 1, 31 do redis.call('HDEL', batch(id), 'r' .. code) end
        redis.call('HDEL', batch(id), 'recount')
        local m = redis.call('HMGET', batch(id), 'state', 'total', 'retried_by', 'sealed')
        if m[1] == 'done' and finished < tonumber(m[2] or '0') then
          if not m[3] or redis.call('HGET', batch(m[3]), 'retry_of') ~= id then
            redis.call('HSET', batch(id), 'state', 'running', 'sealed', '1')
            redis.call('HDEL', batch(id), 'ended')
            redis.call('SADD', K .. ':running', id)
            for _, k in ipairs(results(id)) do redis.call('PERSIST', k) end
            for _, word in ipairs({'state', 'done', 'running'}) do out[#out + 1] = word end
          end
        elseif m[1] == 'done' and m[4] ~= '1' then set('sealed', 1) end
        return out
        """#)

    /// Makes the counts true; returns what was wrong.
    func tally(_ batch: String, token: String) async throws(RedisError) -> [(name: String, old: Int, new: Int)] {
        let words = try await run(Self.tally, [RedisArgument(batch), RedisArgument(token)]).array ?? []
        return stride(from: 0, to: words.count - 2, by: 3).map {
            (words[$0].string ?? "", words[$0 + 1].int ?? 0, words[$0 + 2].int ?? 0)
        }
    }

    // HOLD: no job of the batch is given out for the next ten seconds, so that jobs only move from workers to the list, or end. REAP of any
    // worker lets go where nobody has.
    // ARGV: batch, token, "1" to begin, "" to go on. Result: {OK, URLs pushed}, or {LOST} where it was let go in between.
    // Cost: O(ready batches).
    private static let hold = step(
        "HOLD",
        #"""
        if not mine() then return {'LOST'} end
        if ARGV[3] ~= '1' and redis.call('HEXISTS', K .. ':held', id) == 0 then return {'LOST'} end
        redis.call('HSET', K .. ':held', id, now() + 10000)
        takeOut(id)
        return {'OK', redis.call('HGET', batch(id), 'pushed') or '0'}
        """#)

    /// Holds a batch, or goes on holding it; returns how many of its URLs are pushed, nil where it was not held all the time.
    func holdForRepair(_ batch: String, token: String, begins: Bool) async throws(RedisError) -> Int? {
        let arguments = [RedisArgument(batch), RedisArgument(token), begins ? "1" : ""]
        let reply = try await run(Self.hold, arguments).array ?? []
        return reply.first?.string == "OK" ? reply.last?.int ?? 0 : nil
    }

    // LETGO: jobs of the batch are given out again. ARGV: batch, token. Again: the same. Cost: O(1).
    private static let letGo = step(
        "LETGO",
        #"""
        redis.call('HDEL', K .. ':held', id)
        if redis.call('LLEN', jobs(id)) > 0 then ready(id) end
        return 1
        """#)

    func letGo(_ batch: String, token: String) async throws(RedisError) {
        _ = try await run(Self.letGo, [RedisArgument(batch), RedisArgument(token)])
    }

    // SWEEP: an element leaves the job list: to the list of the dead where it is no job, for good where its URLs are in another job.
    // ARGV: batch, token, element, "1" where it is no job. Result: 1, or 0 where it is not there (any more). Again: 0. Cost: O(jobs).
    private static let sweep = step(
        "SWEEP",
        #"""
        if not mine() or redis.call('LREM', jobs(id), 1, ARGV[3]) == 0 then return 0 end
        if ARGV[4] == '1' then bury(ARGV[3]) end
        return 1
        """#)

    func sweep(_ batch: String, token: String, element: [UInt8], isDead: Bool) async throws(RedisError) -> Bool {
        try await run(
            Self.sweep, [RedisArgument(batch), RedisArgument(token), RedisArgument(element), isDead ? "1" : ""]
        ).int == 1
    }

    // RAISE: how many URLs are pushed, and how many there are, becomes true.
    // ARGV: batch, token, URLs pushed before, and now, total or "". Result: 1; 0 where somebody has pushed meanwhile. Cost: O(1).
    private static let raise = step(
        "RAISE",
        #"""
        local pushed = redis.call('HGET', batch(id), 'pushed') or '0'
        if not mine() or (pushed ~= ARGV[3] and pushed ~= ARGV[4]) then return 0 end
        redis.call('HSET', batch(id), 'pushed', ARGV[4])
        if ARGV[5] ~= '' then redis.call('HSET', batch(id), 'total', ARGV[5]) end
        return 1
        """#)

    func setPushed(
        _ batch: String, token: String, from old: Int, to new: Int, total: Int?
    ) async throws(RedisError) -> Bool {
        try await run(
            Self.raise,
            [
                RedisArgument(batch), RedisArgument(token), RedisArgument(old), RedisArgument(new),
                RedisArgument(total.map(String.init) ?? ""),
            ]
        ).int == 1
    }

    /// What Redis said to jobs that were offered again.
    enum Refill: Sendable, Equatable {
        case taken
        /// So many jobs wait that workers should have some first.
        case full
        /// The batch is over, or another repair has it.
        case closed
    }

    // REFILL: jobs of URLs that were in none, in the order of their indices, to the end that is popped.
    // ARGV: batch, token, index behind the last of them, jobs … Result: OK, FULL, CLOSED. Again: OK, and nothing more. Cost: O(jobs).
    private static let refill = step(
        "REFILL", allowsOOM: false,
        #"""
        local m = redis.call('HMGET', batch(id), 'state', 'filled', 'order')
        if not mine() or m[1] ~= 'running' then return 'CLOSED' end
        if tonumber(m[2] or '0') >= tonumber(ARGV[3]) then return 'OK' end
        if redis.call('LLEN', jobs(id)) >= 4096 or bytesOf(id) >= mostBytes then return 'FULL' end
        for i = #ARGV, 4, -1 do redis.call(m[3] == 'lifo' and 'LPUSH' or 'RPUSH', jobs(id), ARGV[i]) end
        redis.call('HSET', batch(id), 'filled', ARGV[3])
        ready(id)
        return 'OK'
        """#)

    func refill(_ batch: String, token: String, upTo end: Int, jobs: [PrefetchJob]) async throws(RedisError) -> Refill {
        let arguments = [RedisArgument(batch), RedisArgument(token), RedisArgument(end)]
        switch try await run(Self.refill, arguments + jobs.map { RedisArgument($0.encoded()) }).string {
        case "OK": return .taken
        case "FULL": return .full
        default: return .closed
        }
    }

    // PRUNE: details of URLs that were not skipped go, and those that are more than the batch keeps.
    // ARGV: batch, token, most details, indices … Result: how many went. Again: 0. Cost: O(indices).
    private static let prune = step(
        "PRUNE",
        #"""
        local n = 0
        for i = 4, #ARGV do
          local code = redis.call('GETRANGE', outcomes(id), ARGV[i], ARGV[i]):byte() or 0
          if code < 4 or redis.call('HLEN', skipped(id)) > tonumber(ARGV[3]) then
            n = n + redis.call('HDEL', skipped(id), ARGV[i])
          end
        end
        return n
        """#)

    /// * `indices`: as they stand in the hash of details; some hundred.
    func prune(_ batch: String, token: String, keep: Int, indices: [String]) async throws(RedisError) -> Int {
        let arguments = [RedisArgument(batch), RedisArgument(token), RedisArgument(keep)]
        return try await run(Self.prune, arguments + indices.map { RedisArgument($0) }).int ?? 0
    }

    // FINISH: the end of a repair. The sets, the slot and the ready lists become what the batch's state says; it is done where its
    // last URL has ended. The batch is let go first, so that it is also where a key of a wrong type ends the rest. Of a batch that another
    // repair has meanwhile nothing is changed.
    // ARGV: batch, token. Result: {its state, in how many sets it was not as it must be}. Again: the same state and 0. Cost: O(log batches),
    // and of a batch that is over the deletion of its list.
    private static let finish = step(
        "FINISH",
        #"""
        local m = redis.call('HMGET', batch(id), 'state', 'slot', 'created', 'repair')
        if m[4] and m[4]:sub(1, #token + 1) ~= token .. ' ' then return {m[1], '0'} end
        redis.call('HDEL', batch(id), 'repair', 'filled')
        redis.call('HDEL', K .. ':held', id)
        local wrong = redis.call('ZADD', K .. ':batches', 'NX', number(m[3], now()), id)
        local has = m[2] and redis.call('HGET', K .. ':slots', m[2])
        takeOut(id)
        if m[1] == 'running' then
          wrong = wrong + redis.call('SADD', K .. ':running', id)
          if m[2] and (not has or redis.call('HGET', batch(has), 'state') ~= 'running') then
            redis.call('HSET', K .. ':slots', m[2], id)
            wrong = wrong + 1
          end
          if redis.call('LLEN', jobs(id)) > 0 then ready(id) end
          closeIfComplete(id)
        else
          wrong = wrong + redis.call('SREM', K .. ':running', id) + redis.call('DEL', jobs(id), tries(id))
            + redis.call('ZREM', K .. ':deadlines', id)
          if has == id then wrong = wrong + redis.call('HDEL', K .. ':slots', m[2]) end
        end
        return {redis.call('HGET', batch(id), 'state'), tostring(wrong)}
        """#)

    /// Returns the state of the batch, and in how many places it was not as that says.
    @discardableResult
    func finishRepair(_ batch: String, token: String) async throws(RedisError) -> (state: String, wrong: Int) {
        let reply = try await run(Self.finish, [RedisArgument(batch), RedisArgument(token)]).array ?? []
        return (reply.first?.string ?? "", reply.last?.int ?? 0)
    }
}
