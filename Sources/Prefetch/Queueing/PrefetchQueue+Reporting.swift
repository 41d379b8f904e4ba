package import Redis
package import WebImage

extension PrefetchQueue {
    /// How one URL of a job ended, with what is written beside it.
    package struct Settled: Sendable {
        /// Position in the job, from 0.
        package var position: Int
        package var outcome: PrefetchOutcome
        /// Bytes fetched; 0 unless downloaded.
        package var bytes = 0
        /// What `failures` shows, for a skipped URL.
        package var failure: FailureDetail?
        /// The URL, where the policy adds it to the failed set.
        package var list: String?
        /// The URL, where a success removes it from the failed set.
        package var unlist: String?

        package init(position: Int, outcome: PrefetchOutcome) {
            self.position = position
            self.outcome = outcome
        }

        /// Whether something is written beside the outcome.
        fileprivate var isHeavy: Bool { failure != nil || list != nil || unlist != nil }
    }

    /// A group of outcomes of one job.
    package struct Report: Sendable {
        package var job: String
        package var batch: String
        package var base: Int
        package var count: Int
        /// Whether the job has ended with this.
        package var isFinal: Bool
        package var settled: [Settled]
        /// The most entries of skipped URLs the batch keeps.
        package var keepDetails: Int

        package init(
            job: String, batch: String, base: Int, count: Int, isFinal: Bool, settled: [Settled], keepDetails: Int
        ) {
            self.job = job
            self.batch = batch
            self.base = base
            self.count = count
            self.isFinal = isFinal
            self.settled = settled
            self.keepDetails = keepDetails
        }
    }

    // REPORT: outcomes of one job.
    // ARGV: worker, job, "1" where the job has ended, most details kept, one byte per URL (0 = nothing to say), 4 bytes big endian
    // per URL that is not 0 (its length; nothing where all are 0), number of details, {position, detail}…, number of URLs to list, {position, URL, meta
    // tail}…, {position, URL}… to take off the list.
    // Result: {OK, one byte per URL: the outcome where this call was first to settle it, else 0} or {state, ""}.
    // For exactly the URLs it is first to settle it writes the outcome, adds to the counts of the batch and of the worker, keeps
    // the detail and changes the failed set; then it completes the batch if that was the last one. Again, or from a worker that
    // was reaped in between: changes nothing more. Cost: O(URLs).
    // While a repair counts the outcomes anew, piece by piece up to the index `recount`, it adds to that count as well.
    // A job that has ended for its worker and has open URLs goes back: Redis was started anew without its last second, in which they were
    // reported.
    private static let report = script(
        "REPORT",
        #"""
        local worker, name = ARGV[1], ARGV[2]
        local id, base, n = parts(name)
        local payload = ARGV[3] == '1' and redis.call('HGET', own(worker), name)
        if payload then
          redis.call('HDEL', own(worker), name)
          redis.call('HDEL', tries(id), name, name .. '!')
        end
        local m = redis.call('HMGET', batch(id), 'state', 'recount')
        local state, recounted, recount = m[1], tonumber(m[2] or '0'), {}
        if state ~= 'running' then return {state or 'gone', ''} end
        -- As strings, and byte by byte only where somebody was there before: most reports are the first of all their URLs, and many
        -- have one code.
        local old, said, first = redis.call('GETRANGE', outcomes(id), base, base + n - 1), ARGV[5], ARGV[5]
        -- In two steps: string.rep costs a call for each repetition.
        local function all(code) return string.rep(string.rep(string.char(code), 16), 16) end
        local untouched = old == all(0):sub(1, #old)
        if not untouched then
          local was, new = {old:byte(1, -1)}, {said:byte(1, -1)}
          for i = 1, n do if (was[i] or 0) ~= 0 then new[i] = 0 end end
          first = string.char(unpack(new))
        end
        local count, new, skippedNew, bytes = {}, 0, 0, 0
        local code = first:byte(1)
        if first == all(code):sub(1, n) then
          count[code] = n
        else
          for _, code in ipairs({first:byte(1, -1)}) do count[code] = (count[code] or 0) + 1 end
        end
        count[0] = nil
        for code, c in pairs(count) do
          new = new + c
          if code > 3 then skippedNew = skippedNew + c end
        end
        if new > 0 and ARGV[6] ~= '' then
          local at = 1
          for i = 1, n do
            if said:byte(i) ~= 0 then
              if untouched or first:byte(i) ~= 0 then bytes = bytes + struct.unpack('>I4', ARGV[6], at) end
              at = at + 4
            end
          end
        end
        if new > 0 then
          if untouched then
            old = said
          else
            local both = {old:byte(1, -1)}
            for i = 1, n do both[i] = (both[i] or 0) ~= 0 and both[i] or first:byte(i) end
            old = string.char(unpack(both))
          end
          redis.call('SETRANGE', outcomes(id), base, old)
          -- What a repair has counted already, it has to hear of.
          if base < recounted then
            for i = 1, math.min(n, recounted - base) do
              local code = first:byte(i) or 0
              if code ~= 0 then recount[code] = (recount[code] or 0) + 1 end
            end
          end
          for code, c in pairs(count) do
            redis.call('HINCRBY', batch(id), 'o' .. code, c)
            redis.call('HINCRBY', counts(id), worker .. ':' .. code, c)
          end
          for code, c in pairs(recount) do redis.call('HINCRBY', batch(id), 'r' .. code, c) end
          redis.call('HINCRBY', batch(id), 'finished', new)
          if skippedNew > 0 then redis.call('HINCRBY', batch(id), 'skipped', skippedNew) end
          if bytes > 0 then
            redis.call('HINCRBY', batch(id), 'bytes', bytes)
            redis.call('HINCRBY', counts(id), worker .. ':bytes', bytes)
          end
          redis.call('HDEL', tries(id), name, name .. '!')
          local t, a = now(), 8
          redis.call('HSET', batch(id), 'last', t)
          local function isFirst(position) return first:byte(position + 1) ~= 0 end
          -- All of a kind in one command: a call from Lua costs more than what it does.
          local details, entries = tonumber(ARGV[7]), {}
          local room = details > 0 and tonumber(ARGV[4]) - redis.call('HLEN', skipped(id)) or 0
          for i = a, a + 2 * details - 2, 2 do
            if room <= 0 then break end
            if isFirst(ARGV[i]) then
              entries[#entries + 1] = string.format('%d', base + ARGV[i])
              entries[#entries + 1] = ARGV[i + 1]
              room = room - 1
            end
          end
          if #entries > 0 then redis.call('HSET', skipped(id), unpack(entries)) end
          a = a + 2 * details
          local urls, tails = {}, {}
          for i = a + 1, a + 3 * tonumber(ARGV[a]) - 2, 3 do
            if isFirst(ARGV[i]) then
              urls[#urls + 1] = ARGV[i + 1]
              tails[#tails + 1] = ARGV[i + 2]
            end
          end
          a = a + 1 + 3 * tonumber(ARGV[a])
          if #urls > 0 then
            local known, metas, latest = {}, {}, {}
            t = string.format('%d', t)
            local new = t .. ' ' .. t .. ' 1 '
            -- Of a list that is new to the set nothing is known; that is one look.
            local added = redis.call('SADD', K .. ':failed', unpack(urls))
            if added < #urls then known = redis.call('HMGET', K .. ':failed:meta', unpack(urls)) end
            for i, url in ipairs(urls) do
              local since, times = (latest[url] or known[i] or ''):match('^(%d+) %d+ (%d+) ')
              latest[url] = (since and since .. ' ' .. t .. ' ' .. (times + 1) .. ' ' or new) .. tails[i]
              metas[2 * i - 1] = url
              metas[2 * i] = latest[url]
            end
            redis.call('HSET', K .. ':failed:meta', unpack(metas))
          end
          local taken = {}
          for i = a, #ARGV - 1, 2 do if isFirst(ARGV[i]) then taken[#taken + 1] = ARGV[i + 1] end end
          if #taken > 0 then
            redis.call('SREM', K .. ':failed', unpack(taken))
            redis.call('HDEL', K .. ':failed:meta', unpack(taken))
          end
          closeIfComplete(id)
        end
        if payload and (#old < n or old:find('\0', 1, true)) then giveBack(id, payload) end
        return {'OK', first}
        """#)

    /// Reports groups of outcomes in one round trip. Returns for each the outcomes this call was first to settle, by position; nil
    /// where the batch is no longer running, or broken.
    package func report(
        _ reports: [Report], worker: String
    ) async throws(RedisError) -> [[(position: Int, outcome: PrefetchOutcome)]?] {
        try await report(reports, worker: worker, namesServer: false).first
    }

    /// The same; tells too which start of Redis has answered, where that is wanted.
    func report(
        _ reports: [Report], worker: String, namesServer: Bool
    ) async throws(RedisError) -> (first: [[(position: Int, outcome: PrefetchOutcome)]?], server: String) {
        let parts = reports.map { Self.parts(of: $0) }
        let calls = parts.joined().map { report in
            RedisScriptCall(
                Self.report, keys: [RedisArgument(keys.root)], arguments: Self.arguments(of: report, worker: worker))
        }
        let answer = try await patiently { () async throws(RedisError) in
            let (replies, server) =
                namesServer ? try await connection.runNamingServer(calls) : (try await connection.run(calls), "")
            return (try Self.withoutTransient(replies), server)
        }
        var values = answer.0[...]
        var results: [[(position: Int, outcome: PrefetchOutcome)]?] = []
        for (group, report) in zip(parts, reports) {
            // Nil where every part found the batch over; where it was cancelled between two parts, the first one counts.
            var first: [(position: Int, outcome: PrefetchOutcome)]?
            for _ in group {
                let value = values.removeFirst()
                if let error = value.error?.asError, error.code == .reply {
                    // A key of this batch is not what it must be. The other reports count.
                    notice(.broken(batch: report.batch, message: error.message))
                    continue
                }
                let reply = try value.get().array ?? []
                guard reply.first?.string == "OK", let codes = reply.last?.bytes else { continue }
                first =
                    (first ?? [])
                    + codes.enumerated().compactMap { position, code in
                        PrefetchOutcome(rawValue: code).map { (position, $0) }
                    }
            }
            results.append(first)
        }
        return (results, answer.1)
    }

    /// A report in as many calls as it takes that none keeps Redis from everybody else for milliseconds: what is written beside an outcome
    /// costs some 10 us a URL. Only the last call ends the job.
    private static func parts(of report: Report) -> [Report] {
        guard report.settled.count > heavy, report.settled.count(where: { $0.isHeavy }) > heavy else { return [report] }
        let starts = Array(stride(from: 0, to: report.settled.count, by: heavy))
        return starts.map { start in
            var part = report
            part.settled = Array(report.settled[start..<min(start + heavy, report.settled.count)])
            part.isFinal = report.isFinal && start == starts.last
            return part
        }
    }

    private static let heavy = 64

    /// Notes an address the policy refused, for whoever watches the batch. Again: the same.
    package func noteRefusal(batch: String, host: String, message: String) async throws(RedisError) {
        let reply = try await read([
            ["HSETNX", RedisArgument(keys.refused(batch)), RedisArgument(host), RedisArgument(message)]
        ])[0]
        // A full Redis takes no notes, and no URL may wait for one; nor for a key of a wrong type.
        if let error = reply.error?.asError, error.code != .outOfMemory, error.code != .reply { throw error }
    }

    /// The addresses that were refused in a batch, with the sentence about each.
    package func refusals(of batch: String) async throws(RedisError) -> [(host: String, message: String)] {
        let fields = try await read([["HGETALL", RedisArgument(keys.refused(batch))]])[0].get().fields ?? [:]
        return fields.map { ($0.key, $0.value.string ?? "") }.sorted { $0.host < $1.host }
    }

    private static func arguments(of report: Report, worker: String) -> [RedisArgument] {
        var codes = [UInt8](repeating: 0, count: report.count)
        var sizes = [Int](repeating: 0, count: report.count)
        var details: [RedisArgument] = []
        var listed: [RedisArgument] = []
        var unlisted: [RedisArgument] = []
        for item in report.settled {
            codes[item.position] = item.outcome.rawValue
            sizes[item.position] = item.bytes
            let position = RedisArgument(item.position)
            if let failure = item.failure { details += [position, RedisArgument(failure.encoded())] }
            if let url = item.list {
                let status = item.failure?.httpStatus ?? 0
                let tail = "\(item.outcome.name) \(status) \(report.batch) \(item.failure?.detail ?? "")"
                listed += [position, RedisArgument(url), RedisArgument(tail)]
            }
            if let url = item.unlist { unlisted += [position, RedisArgument(url)] }
        }
        var lengths: [UInt8] = []
        // What fetched nothing has no lengths, and Redis need not add them up.
        let hasFetched = sizes.contains { $0 > 0 }
        for (code, size) in zip(codes, sizes) where hasFetched && code != 0 {
            let size = UInt32(clamping: size)
            lengths += [UInt8(size >> 24), UInt8(size >> 16 & 255), UInt8(size >> 8 & 255), UInt8(size & 255)]
        }
        return [
            RedisArgument(worker), RedisArgument(report.job), report.isFinal ? "1" : "0",
            RedisArgument(report.keepDetails),
            RedisArgument(codes), RedisArgument(lengths), RedisArgument(details.count / 2),
        ] + details + [RedisArgument(listed.count / 3)] + listed + unlisted
    }
}
