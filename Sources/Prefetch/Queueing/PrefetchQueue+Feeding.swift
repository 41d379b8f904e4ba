package import Redis

extension PrefetchQueue {
    // OPEN: a new batch.
    // ARGV: wanted id, nonce of this call, "1" where exactly this id is wanted, slot or "", then fields and values of its hash.
    // Result: {id it got, batch it ended or ""}: the wanted id, or with .2, .3 … where that one is taken; false where it is taken and
    // was named. A running batch that has the slot is cancelled in the same step.
    // With a field retry_of, that batch is linked to it in the same step; false where it is gone, runs, or has a retry.
    // With a field limit (ms), its deadline is so much later. With open = 1 its list is the first of its lists, where it has one.
    // Again with the same nonce: the same, and nothing is cancelled. Cost: O(fields + batches of the same list), and the deletion of the
    // cancelled batch's job list.
    private static let open = script(
        "OPEN", allowsOOM: false,
        #"""
        tick()
        local id, n = ARGV[1], 1
        while true do
          local nonce = redis.call('HGET', batch(id), 'nonce')
          if nonce == ARGV[2] then return {id, redis.call('HGET', batch(id), 'replaced') or ''} end
          if not nonce then break end
          if ARGV[3] == '1' then return false end
          n = n + 1
          id = ARGV[1] .. '.' .. n
        end
        local of
        for i = 5, #ARGV, 2 do if ARGV[i] == 'retry_of' then of = ARGV[i + 1] end end
        if of then
          local m = redis.call('HMGET', batch(of), 'state', 'retried_by')
          if not m[1] or m[1] == 'running' then return false end
          if m[2] and redis.call('HGET', batch(m[2]), 'retry_of') == of then return false end
          redis.call('HSET', batch(of), 'retried_by', id)
          keepFor(of, 0)
        end
        local slot, replaced = ARGV[4], ''
        if slot ~= '' then
          local last = redis.call('HGET', K .. ':slots', slot)
          if last and redis.call('HGET', batch(last), 'state') == 'running' then
            close(last, 'cancelled', 'slot')
            replaced = last
          end
          redis.call('HSET', K .. ':slots', slot, id)
        end
        local t = now()
        redis.call('HSET', batch(id), 'nonce', ARGV[2], 'state', 'running', 'sealed', '0', 'pushed', '0', 'finished', '0',
          'skipped', '0', 'bytes', '0', 'created', t, 'fed', t, unpack(ARGV, 5))
        if slot ~= '' then redis.call('HSET', batch(id), 'slot', slot, 'replaced', replaced) end
        local f = redis.call('HMGET', batch(id), 'limit', 'open', 'list', 'total', 'lines', 'hash', 'host')
        if f[1] then
          redis.call('HSET', batch(id), 'deadline', t + tonumber(f[1]))
          redis.call('ZADD', K .. ':deadlines', t + tonumber(f[1]), id)
        end
        if f[2] == '1' and (f[3] or '') ~= '' then
          redis.call('RPUSH', lists(id), table.concat({'0 0', f[4], f[5], f[6], ARGV[2], f[7], f[3]}, ' '))
        end
        redis.call('ZADD', K .. ':batches', t, id)
        redis.call('SADD', K .. ':running', id)
        return {id, replaced}
        """#)

    /// Makes a batch and returns its id; nil where `exactly` this id is wanted and taken.
    /// * `nonce`: any text that no other call uses; with the same one the call may be repeated.
    package func open(
        id: String, nonce: String, exactly: Bool, fields: [(String, String)]
    ) async throws(RedisError) -> String? {
        try await open(id: id, nonce: nonce, exactly: exactly, slot: nil, fields: fields)?.id
    }

    /// A batch that was made.
    package struct Opened: Sendable, Equatable {
        /// Its id.
        package var id: String
        /// The batch that had the slot and was cancelled for it.
        package var replaced: String?
    }

    /// Makes a batch that takes a slot: the running batch that has it is cancelled in the same step.
    package func open(
        id: String, nonce: String, exactly: Bool, slot: String?, fields: [(String, String)]
    ) async throws(RedisError) -> Opened? {
        var arguments: [RedisArgument] = [RedisArgument(id), RedisArgument(nonce), exactly ? "1" : "0"]
        arguments.append(RedisArgument(slot ?? ""))
        for (name, value) in fields { arguments += [RedisArgument(name), RedisArgument(value)] }
        guard let reply = try await run(Self.open, arguments).array, let id = reply.first?.string else { return nil }
        return Opened(id: id, replaced: reply.last?.string.flatMap { $0.isEmpty ? nil : $0 })
    }

    /// The running batch that has a slot.
    package func batch(inSlot slot: String) async throws(RedisError) -> String? {
        try await read([["HGET", RedisArgument(keys.slots), RedisArgument(slot)]])[0].get().string
    }

    /// What Redis said to jobs that were offered to it.
    package enum PushResult: Sendable, Equatable {
        /// Taken; so many URLs of the batch are pushed now.
        case pushed(Int)
        /// The window is full: offer them again when workers have claimed some.
        case full
        /// Redis has another number of URLs than the caller thinks (a lost reply, or Redis lost its tail): go on from there.
        case at(Int)
        /// The batch takes no more: `sealed`, `done`, `cancelled`, or `gone` where Redis knows it no more; `unlisted` where it has
        /// no such list, `open` where it has lists and none was named.
        case closed(String)
    }

    // PUSH: jobs onto a batch's list.
    // ARGV: batch, number of URLs pushed before, most jobs the list may hold ("auto": 1,024 shared by the running batches, at
    // least 64; but for "all" it holds at most 24 MiB too, with "auto" shared likewise, at least 1.5 MiB; into an empty list any push
    // goes), number of URLs in these jobs, place and hash of the list they are of ("": the batch has one), the jobs (none:
    // only whether there is room, for whoever waits for it).
    // Result: {OK|FULL|AT|CLOSED, URLs pushed or state}. Again: AT with the number the first call led to. Cost: O(jobs).
    // The last URL of an open batch that takes no more lists seals it.
    private static let push = script(
        "PUSH", allowsOOM: false,
        #"""
        local id = ARGV[1]
        tick()
        endDue()
        local m = redis.call('HMGET', batch(id), 'pushed', 'state', 'sealed', 'open')
        if not m[1] then return {'CLOSED', 'gone'} end
        if m[2] ~= 'running' then return {'CLOSED', m[2]} end
        redis.call('HSET', batch(id), 'fed', now())
        if m[1] ~= ARGV[2] then return {'AT', m[1]} end
        if m[3] == '1' then return {'CLOSED', 'sealed'} end
        if m[4] == '1' and ARGV[5] == '' then return {'CLOSED', 'open'} end
        if ARGV[5] ~= '' then
          -- Redis may have lost its tail, and with it the list; another may be in its place.
          local place, hash = ARGV[5]:match('^(%d+) (%S+)$')
          local base, n, found = (redis.call('LINDEX', lists(id), place) or ''):match('^(%d+) %d+ (%d+) %d+ (%S+) ')
          local first = tonumber(m[1])
          if found ~= hash or first < tonumber(base) or first + tonumber(ARGV[4]) > base + n then
            return {'CLOSED', 'unlisted'}
          end
        end
        if ARGV[3] ~= 'all' then
          local most, bytes = tonumber(ARGV[3]), mostBytes
          if not most then
            most = math.max(64, math.floor(1024 / math.max(1, redis.call('SCARD', K .. ':running'))))
            bytes = bytes * most / 1024
          end
          local waiting = redis.call('LLEN', jobs(id))
          if waiting >= most or waiting > 0 and bytesOf(id) >= bytes then return {'FULL', m[1]} end
        end
        for i = 6, #ARGV, 500 do redis.call('LPUSH', jobs(id), unpack(ARGV, i, math.min(i + 499, #ARGV))) end
        local pushed = redis.call('HINCRBY', batch(id), 'pushed', ARGV[4])
        if ARGV[6] then ready(id) end
        sealIfFed(id)
        return {'OK', tostring(pushed)}
        """#)

    /// Pushes consecutive jobs of a batch.
    ///
    /// * `offset`: how many of the batch's URLs are pushed already; what makes a repeated call harmless.
    /// * `window`: `auto`, `all` or a number of jobs; but for `all` it is 24 MiB at most.
    /// * `list`: which list of an open batch they are of.
    package func push(
        batch: String, offset: Int, window: String, count: Int, of list: ListSegment? = nil, jobs: [[UInt8]]
    ) async throws(RedisError) -> PushResult {
        var arguments: [RedisArgument] = [
            RedisArgument(batch), RedisArgument(offset), RedisArgument(window), RedisArgument(count),
            RedisArgument(list.map { "\($0.number) \($0.hash)" } ?? ""),
        ]
        arguments += jobs.map { RedisArgument($0) }
        let reply = try await run(Self.push, arguments).array ?? []
        let value = reply.last?.string ?? ""
        switch reply.first?.string {
        case "OK": return .pushed(Int(value) ?? 0)
        case "FULL": return .full
        case "AT": return .at(Int(value) ?? 0)
        default: return .closed(value)
        }
    }

    // FULL: who feeds a batch is there, and waits for a Redis that has reached its maxmemory. PUSH, which is refused then, says so otherwise.
    // ARGV: batch. Result: its state, nil where it is gone. Again: the same. Cost: O(1).
    private static let full = script(
        "FULL",
        #"""
        local id = ARGV[1]
        endDue()
        local state = redis.call('HGET', batch(id), 'state')
        if state == 'running' then redis.call('HSET', batch(id), 'fed', now(), 'full', now()) end
        return state
        """#)

    /// Says that the feeder of a batch waits for memory; returns the batch's state, nil where Redis knows it no more.
    package func noteFull(batch: String) async throws(RedisError) -> String? {
        try await run(Self.full, [RedisArgument(batch)]).string
    }

    // SEAL: the list is complete.
    // ARGV: batch, total. Result: {OK|AT|CLOSED, URLs pushed or state}; completes the batch where every URL has ended already
    // (the empty batch too). An open one is sealed by CLOSE. Again: the same. Cost: O(1).
    private static let seal = script(
        "SEAL",
        #"""
        local id = ARGV[1]
        local m = redis.call('HMGET', batch(id), 'pushed', 'state', 'sealed', 'open')
        if not m[1] then return {'CLOSED', 'gone'} end
        if m[3] == '1' then return {'OK', m[1]} end
        if m[2] ~= 'running' then return {'CLOSED', m[2]} end
        if m[4] == '1' then return {'CLOSED', 'open'} end
        if m[1] ~= ARGV[2] then return {'AT', m[1]} end
        redis.call('HSET', batch(id), 'sealed', '1', 'total', ARGV[2])
        closeIfComplete(id)
        return {'OK', m[1]}
        """#)

    /// Says that the batch has `total` URLs and all are pushed.
    package func seal(batch: String, total: Int) async throws(RedisError) -> PushResult {
        let reply = try await run(Self.seal, [RedisArgument(batch), RedisArgument(total)]).array ?? []
        let value = reply.last?.string ?? ""
        switch reply.first?.string {
        case "OK": return .pushed(Int(value) ?? 0)
        case "AT": return .at(Int(value) ?? 0)
        default: return .closed(value)
        }
    }

    // CANCEL: ends a batch now. Its open URLs read as `cancelled` from here on; the total stays what is known of it.
    // ARGV: batch. Result: the state it had. Again: changes nothing. Cost: O(1), the job list is deleted.
    private static let cancel = script(
        "CANCEL",
        #"""
        local state = redis.call('HGET', batch(ARGV[1]), 'state')
        if state == 'running' then close(ARGV[1], 'cancelled', 'hand') end
        return state
        """#)

    /// Cancels a batch; returns the state it had before, nil where there is none of this id.
    package func cancel(batch: String) async throws(RedisError) -> String? {
        try await run(Self.cancel, [RedisArgument(batch)]).string
    }
}
