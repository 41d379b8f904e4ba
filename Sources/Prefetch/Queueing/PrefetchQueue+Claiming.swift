package import Redis

extension PrefetchQueue {
    /// A job as a worker gets it.
    package struct Claim: Sendable, Equatable {
        /// The job.
        package var job: PrefetchJob
        /// The nonce of its batch.
        package var nonce: String
        /// One byte per URL: 0 = open, otherwise settled already, by a worker that died or whose report was late.
        package var outcomes: [UInt8]
        /// Deaths of workers that had the job and reported nothing new of it.
        package var deliveries: Int
        /// Deaths while the job's one URL was with the decoder and nothing else was in flight.
        package var marks: Int

        /// The batch it is of.
        package var batch: BatchIdentity { BatchIdentity(id: job.batch, nonce: nonce) }
        /// What the worker's claim of it is called in Redis.
        package var name: String { "\(job.name)@\(nonce)" }
    }

    /// What a worker is told.
    package enum ClaimResult: Sendable, Equatable {
        /// The jobs it has now; none where no batch has any.
        case claimed([Claim])
        /// It is paused: nothing for it until it is told otherwise.
        case paused
        /// Its registration is gone (reaped): it takes a new name and joins again.
        case lost
    }

    // CLAIM: the next jobs for a worker.
    // ARGV: worker, sequence number of this claim, most jobs, lease in ms.
    // Result: {LOST}, {PAUSED} or {OK, then payload, nonce of its batch, outcome bytes, deliveries, marks for each job, then where there is something to
    // tell a list of kind, batch and text: DEAD and the first bytes of an element that was no job and is on the list of the dead
    // now, or BROKEN and why a batch was set aside}. Again with the same number: the same jobs, as far as the worker still has them;
    // what there was to tell is told once. Ends batches whose deadline has passed first. Cost: O(jobs), and a look at each ready
    // batch that has had its share.
    //
    // Of 16 turns high has 11, normal 4 and low 1; a priority that has nothing leaves its turns to the next. Batches of one priority
    // take turns by jobs, and share by URLs: one that has had its 256 waits until all others have had theirs, so that a list in jobs
    // of 2 is not held up by one in jobs of 256.
    //
    // A batch with a key of a wrong type must not keep the others from being worked on: it leaves the ready lists with a field
    // `broken`, until `prefetch-coord repair` has mended it. What Redis has done by then of its job is undone.
    //
    // A script, never BLMOVE into a private list: that loses jobs when a worker stops inside it and is reaped, or the reply is lost
    // while the worker lives, and it cannot drain a Redis that has reached maxmemory.
    private static let claim = script(
        "CLAIM",
        #"""
        local worker, wanted = ARGV[1], tonumber(ARGV[3])
        if not redis.call('ZSCORE', K .. ':workers', worker) then return {'LOST'} end
        redis.call('ZADD', K .. ':workers', 'XX', now() + tonumber(ARGV[4]), worker)
        endDue()
        local out = {'OK'}
        -- What a worker is told of jobs of one batch: all reads first, so that an error leaves nothing behind.
        local function about(id, names)
          local fields, told = {}, {}
          for _, name in ipairs(names) do
            fields[#fields + 1] = name
            fields[#fields + 1] = name .. '!'
          end
          local t = redis.call('HMGET', tries(id), unpack(fields))
          for i, name in ipairs(names) do
            local start, n = name:match(':(%d+):(%d+)$')
            told[i] = {redis.call('GETRANGE', outcomes(id), start, start + n - 1), t[2 * i - 1] or '0', t[2 * i] or '0'}
          end
          return told
        end
        local function give(payload, nonce, told)
          out[#out + 1] = payload
          out[#out + 1] = nonce
          for _, word in ipairs(told) do out[#out + 1] = word end
        end
        local last = redis.call('HMGET', own(worker), '#seq', '#jobs')
        if last[1] == ARGV[2] then
          for name in last[2]:gmatch('%S+') do
            local payload = redis.call('HGET', own(worker), name)
            local id, _, _, nonce = parts(name)
            if payload then give(payload, nonce, about(id, {jobOf(name)})[1]) end
          end
          return out
        end
        if redis.call('HGET', K .. ':w:' .. worker, 'paused') == '1' then return {'PAUSED'} end
        if redis.call('EXISTS', K .. ':paused') == 1 then return out end
        -- The batch of a ready list whose turn it is, and its credit where it has to share.
        local function pick(list)
          local count = redis.call('LLEN', list)
          if count < 2 then return redis.call('LINDEX', list, 0) end
          while true do
            for _ = 1, count do
              local id = redis.call('LMOVE', list, list, 'LEFT', 'RIGHT')
              local known = redis.pcall('HGET', batch(id), 'credit')
              -- No hash: what takes a job of it finds out.
              if type(known) == 'table' then return id end
              local credit = tonumber(known or '') or 256
              if credit > 0 then return id, credit end
            end
            for _, id in ipairs(redis.call('LRANGE', list, 0, -1)) do
              local owed = tonumber(redis.call('HGET', batch(id), 'credit') or '') or 0
              -- Nobody owes so much, or what is no number: somebody wrote it, and it must not keep this from its end.
              if owed ~= owed or owed < -65536 then owed = 0 end
              redis.call('HSET', batch(id), 'credit', math.floor(owed) + 256)
            end
          end
        end
        local names, told = {}, {}
        -- Jobs of a batch, where its next elements are some.
        local function take(id, credit, held, most)
          local m = redis.call('HMGET', batch(id), 'state', 'order', 'pushed', 'nonce')
          local nonce = m[4] or ''
          held.order = m[2]
          held.payloads = redis.call(m[2] == 'lifo' and 'LPOP' or 'RPOP', jobs(id), most) or {}
          if redis.call('LLEN', jobs(id)) == 0 then
            -- One that is in a ready list and says that it is in none would be looked at for ever.
            if redis.call('HGET', batch(id), 'ready') == '1' then unready(id) else takeOut(id) end
          end
          if #held.payloads == 0 or m[1] ~= 'running' then return end
          local good, fields, size = {}, {}, 0
          for _, payload in ipairs(held.payloads) do
            local name = payload:sub(1, 200):match('^prefetch%-job [12] ([^%s@]+) ')
            local of, base, n
            if name then of, base, n = parts(name) end
            if of == id and n >= 1 and n <= 256 and base + n <= tonumber(m[3] or '0') then
              good[#good + 1] = name
              fields[#fields + 1] = name .. '@' .. nonce
              fields[#fields + 1] = payload
              size = size + n
            else
              bury(payload)
              for _, word in ipairs({'DEAD', id, payload:sub(1, 64)}) do told[#told + 1] = word end
            end
          end
          if #good == 0 then return end
          local each = about(id, good)
          redis.call('HSET', own(worker), unpack(fields))
          if credit then redis.call('HSET', batch(id), 'credit', credit - size) end
          for i = 1, #good do
            give(fields[2 * i], nonce, each[i])
            names[#names + 1] = fields[2 * i - 1]
          end
        end
        -- A batch that is alone need not take turns with itself.
        local lists = 0
        for _, p in ipairs({'high', 'normal', 'low'}) do lists = lists + redis.call('LLEN', K .. ':ready:' .. p) end
        while lists > 0 and #names < wanted and #told < 48 do
          local turn = redis.call('INCR', K .. ':wheel') % 16
          local first = turn < 11 and 'high' or turn < 15 and 'normal' or 'low'
          local id, credit
          for _, p in ipairs({first, 'high', 'normal', 'low'}) do
            id, credit = pick(K .. ':ready:' .. p)
            if id then break end
          end
          if not id then break end
          local held = {}
          local ok, err = pcall(take, id, credit, held, lists == 1 and wanted - #names or 1)
          if not ok then
            -- In the order in which they were, whichever end they came from.
            for i = #(held.payloads or {}), 1, -1 do
              redis.pcall(held.order == 'lifo' and 'LPUSH' or 'RPUSH', jobs(id), held.payloads[i])
            end
            takeOut(id)
            redis.pcall('HSET', batch(id), 'broken', words(err))
            for _, word in ipairs({'BROKEN', id, words(err)}) do told[#told + 1] = word end
          end
        end
        if #names > 0 then redis.call('HSET', own(worker), '#seq', ARGV[2], '#jobs', table.concat(names, ' ')) end
        if #told > 0 then out[#out + 1] = told end
        return out
        """#)

    /// Claims up to `count` jobs.
    ///
    /// * `sequence`: a number the worker raises after each claim whose reply it has read.
    /// * `lease`: milliseconds from now until others may take the worker's jobs.
    package func claim(
        worker: String, sequence: Int, count: Int, lease: Int
    ) async throws(RedisError) -> ClaimResult {
        let reply =
            try await run(
                Self.claim,
                [RedisArgument(worker), RedisArgument(sequence), RedisArgument(count), RedisArgument(lease)]
            ).array ?? []
        if reply.first?.string == "PAUSED" { return .paused }
        guard reply.first?.string == "OK" else { return .lost }
        tell(reply.last?.array ?? [])
        var claims: [Claim] = []
        for start in stride(from: 1, to: reply.count - 4, by: 5) {
            let nonce = reply[start + 1].string ?? ""
            guard let payload = reply[start].bytes, let job = PrefetchJob(payload) else {
                try await bury(worker: worker, nonce: nonce, head: Array((reply[start].bytes ?? []).prefix(200)))
                continue
            }
            var outcomes = reply[start + 2].bytes ?? []
            outcomes += Array(repeating: 0, count: max(0, job.entries.count - outcomes.count))
            claims.append(
                Claim(
                    job: job, nonce: nonce, outcomes: outcomes, deliveries: reply[start + 3].int ?? 0,
                    marks: reply[start + 4].int ?? 0))
        }
        return .claimed(claims)
    }

    private func tell(_ words: [RedisValue]) {
        for start in stride(from: 0, to: words.count - 2, by: 3) {
            let batch = words[start + 1].string ?? ""
            switch words[start].string {
            case "DEAD": notice(.buried(batch: batch, head: words[start + 2].bytes ?? []))
            default: notice(.broken(batch: batch, message: words[start + 2].string ?? ""))
            }
        }
    }

    // BURY: a claimed payload whose body is no job (its checksum is wrong) goes to the list of the dead.
    // ARGV: worker, nonce of its batch, the payload's first bytes. Result: 1, or 0 where the worker does not have it (any more). Again: 0. Cost: O(1).
    private static let bury = script(
        "BURY",
        #"""
        local name = ARGV[3]:match('^prefetch%-job [12] (%S+) ')
        local claim = name and name .. '@' .. ARGV[2]
        local payload = claim and redis.call('HGET', own(ARGV[1]), claim)
        if not payload then return 0 end
        bury(payload)
        return redis.call('HDEL', own(ARGV[1]), claim)
        """#)

    private func bury(worker: String, nonce: String, head: [UInt8]) async throws(RedisError) {
        let arguments = [RedisArgument(worker), RedisArgument(nonce), RedisArgument(head)]
        guard try await run(Self.bury, arguments).int == 1 else { return }
        let words = String(decoding: head.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self).split(separator: " ")
        let batch = words.count > 2 ? words[2].prefix { $0 != ":" } : ""
        notice(.buried(batch: String(batch), head: Array(head.prefix(64))))
    }

    // SPLIT: a job that ended three workers comes back in parts, so that its neighbours are rid of the one that does it. The parts
    // start with two deaths: the next one splits again.
    // ARGV: worker, claim, then name and payload of each part. Result: 1, or 0 where the worker does not have the job (any more).
    private static let split = script(
        "SPLIT",
        #"""
        local id, _, _, nonce = parts(ARGV[2])
        if redis.call('HDEL', own(ARGV[1]), ARGV[2]) == 0 then return 0 end
        if not isOf(id, nonce) then return 1 end
        redis.call('HDEL', tries(id), jobOf(ARGV[2]), jobOf(ARGV[2]) .. '!')
        for i = #ARGV - 1, 3, -2 do
          if giveBack(ARGV[i] .. '@' .. nonce, ARGV[i + 1]) then redis.call('HSET', tries(id), ARGV[i], '2') end
        end
        return 1
        """#)

    /// Puts a job back as smaller ones.
    package func split(worker: String, claim: Claim, into parts: [PrefetchJob]) async throws(RedisError) {
        var arguments: [RedisArgument] = [RedisArgument(worker), RedisArgument(claim.name)]
        for part in parts { arguments += [RedisArgument(part.name), RedisArgument(part.encoded())] }
        _ = try await run(Self.split, arguments)
    }

    // MARK: the one URL of this job goes to the decoder now, and nothing else is in flight: a death from here on is its doing.
    // ARGV: worker, claim ("" takes the mark away). Cost: O(1).
    private static let mark = script(
        "MARK",
        #"""
        if ARGV[2] == '' then return redis.call('HDEL', own(ARGV[1]), '#mark') end
        if redis.call('HEXISTS', own(ARGV[1]), ARGV[2]) == 0 then return 0 end
        redis.call('HSET', own(ARGV[1]), '#mark', ARGV[2])
        return 1
        """#)

    /// Sets the mark of a suspect job, by the name of its claim, or takes it away (nil).
    package func mark(worker: String, claim: String?) async throws(RedisError) {
        _ = try await run(Self.mark, [RedisArgument(worker), RedisArgument(claim ?? "")])
    }

    // LISTED: which of these URLs are on the blacklist. Entries older than the asker's time to live lapse here, and those that have lapsed
    // by that of the batch which listed them.
    // ARGV: time to live in ms (0 = for ever), URLs. Result: position from 0 and what stands beside the entry, for each.
    // Cost: O(URLs).
    private static let listed = script(
        "LISTED",
        #"""
        local found = redis.call('SMISMEMBER', K .. ':failed', unpack(ARGV, 2))
        local ttl, t, out = tonumber(ARGV[1]), now(), {}
        local places, urls = {}, {}
        for i, member in ipairs(found) do
          if member == 1 then
            places[#places + 1] = i - 1
            urls[#urls + 1] = ARGV[i + 1]
          end
        end
        if #urls == 0 then return out end
        local ends, gone = redis.call('ZMSCORE', K .. ':failed:lapses', unpack(urls)), {}
        for i, meta in ipairs(redis.call('HMGET', K .. ':failed:meta', unpack(urls))) do
          local last = tonumber(meta and meta:match('^%d+ (%d+) ') or '')
          if ttl > 0 and last and t - last > ttl or ends[i] and tonumber(ends[i]) < t then
            gone[#gone + 1] = urls[i]
          else
            out[#out + 1] = tostring(places[i])
            out[#out + 1] = meta or ''
          end
        end
        if #gone > 0 then unlist(gone) end
        return out
        """#)

    /// The failed URLs among these, by position.
    /// * `timeToLive`: seconds after which an entry lapses; 0 = never.
    package func listed(
        _ urls: [String], timeToLive: Double
    ) async throws(RedisError) -> [Int: FailedURLEntry] {
        guard !urls.isEmpty else { return [:] }
        // Most are not on it. A command asks that for a quarter of what a script costs that is handed as many URLs.
        let members = try await read([
            [RedisArgument("SMISMEMBER"), RedisArgument(keys.failed)] + urls.map { RedisArgument($0) }
        ])
        let positions = (members.first?.array ?? []).enumerated().filter { $1.int == 1 }.map(\.offset)
        guard !positions.isEmpty else { return [:] }
        let reply =
            try await run(
                Self.listed, [RedisArgument(Int(timeToLive * 1000))] + positions.map { RedisArgument(urls[$0]) }
            ).array ?? []
        var found: [Int: FailedURLEntry] = [:]
        for start in stride(from: 0, to: reply.count - 1, by: 2) {
            guard let index = reply[start].int, positions.indices.contains(index) else { continue }
            let position = positions[index]
            found[position] = FailedURLEntry(meta: reply[start + 1].string ?? "")
        }
        return found
    }
}
