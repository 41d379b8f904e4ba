package import Redis
package import WebImage

extension PrefetchQueue {
    // REPORT: outcomes of jobs of one batch.
    // ARGV: worker, batch, its nonce, most details kept, ms after which what it lists lapses (0 = never); then for each job: its name, "1" where it has ended, one byte per URL (0 = nothing to say),
    // 4 bytes big endian per URL that is not 0 (its length; nothing where all are 0), the failures (for neighbours that ended alike 5
    // bytes: first and last position, HTTP status in two, tries), number of details, {position, detail}…, number of URLs to list,
    // {position, URL, meta tail}…, number of URLs to take off the list, {position, URL}….
    // Result: {OK, then for each job 1 where this call was first to settle all it says, else one byte per URL: the outcome where it was
    // first, else 0} or {state}; {gone} too where a later batch has the name; {BROKEN, why} where a key of the batch has another type:
    // nothing is written then, and as in CLAIM the batch leaves the ready lists until it is repaired.
    // For exactly the URLs it is first to settle it writes the outcome, adds to the counts of the batch and of the worker, keeps
    // the detail and the record and changes the failed set; then it completes the batch if that was the last one. Again, or from a
    // worker that was reaped in between: changes nothing more. Cost: O(URLs). Jobs together: a call from Lua costs Redis more than what
    // it does, and most of them are for the batch.
    // While a repair counts the outcomes anew, piece by piece up to the index `recount`, it adds to that count as well.
    // A job that has ended for its worker and has open URLs goes back: Redis was started anew without its last second, in which they were
    // reported.
    private static let report = script(
        "REPORT",
        #"""
        local worker, id, nonce, most, lapse, at = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), 6
        local m = redis.call('HMGET', batch(id), 'state', 'recount', 'nonce', 'created')
        if (m[3] or '') ~= nonce then m = {'gone'} end
        -- Before the first write: a script that fails in the middle has written outcomes without their counts.
        redis.call('HLEN', own(worker))
        if m[1] == 'running' then
          for _, look in ipairs({{'STRLEN', outcomes(id)}, {'HLEN', counts(id)}, {'HLEN', skipped(id)}, {'HLEN', records(id)},
              {'HLEN', tries(id)}, {'LLEN', jobs(id)}}) do
            local reply = redis.pcall(unpack(look))
            if type(reply) == 'table' and reply.err then
              takeOut(id)
              redis.call('HSET', batch(id), 'broken', words(reply))
              return {'BROKEN', words(reply)}
            end
          end
        end
        local isRunning, recounted, recount = m[1] == 'running', tonumber(m[2] or '0'), {}
        local count, new, skippedNew, bytes = {}, 0, 0, 0
        local ended, heard, back, notes, out = {}, {}, {}, {}, {'OK'}
        local rows = {}
        -- So many bytes of a code. In two steps: string.rep costs a call for each repetition.
        local function all(code, n)
          rows[code] = rows[code] or string.rep(string.rep(string.char(code), 16), 16)
          return n == 256 and rows[code] or rows[code]:sub(1, n)
        end
        -- As strings, and byte by byte only where somebody was there before: most reports are the first of all their URLs, and many
        -- have one code.
        local function settle(name, start, n, isFinal, said, lengths)
          local base = tonumber(start)
          local old, first = redis.call('GETRANGE', outcomes(id), start, base + n - 1), said
          local untouched = old == all(0, #old)
          if not untouched then
            local was, mine = {old:byte(1, -1)}, {said:byte(1, -1)}
            for i = 1, n do if (was[i] or 0) ~= 0 then mine[i] = 0 end end
            first = string.char(unpack(mine))
          end
          local codes, c = {}, 0
          local code = first:byte(1)
          if first == all(code, n) then
            codes[code] = n
          else
            for _, code in ipairs({first:byte(1, -1)}) do codes[code] = (codes[code] or 0) + 1 end
          end
          codes[0] = nil
          for code, k in pairs(codes) do
            c = c + k
            count[code] = (count[code] or 0) + k
            if code > 3 then skippedNew = skippedNew + k end
          end
          new = new + c
          if c > 0 and lengths ~= '' then
            local at = 1
            for i = 1, n do
              if said:byte(i) ~= 0 then
                if untouched or first:byte(i) ~= 0 then bytes = bytes + struct.unpack('>I4', lengths, at) end
                at = at + 4
              end
            end
          end
          if c > 0 then
            if untouched then
              old = said
            else
              local both = {old:byte(1, -1)}
              for i = 1, n do both[i] = (both[i] or 0) ~= 0 and both[i] or first:byte(i) end
              old = string.char(unpack(both))
            end
            redis.call('SETRANGE', outcomes(id), start, old)
            -- What a repair has counted already, it has to hear of.
            if base < recounted then
              for i = 1, math.min(n, recounted - base) do
                local code = first:byte(i) or 0
                if code ~= 0 then recount[code] = (recount[code] or 0) + 1 end
              end
            end
          end
          if c > 0 or isFinal and redis.call('HEXISTS', own(worker), name .. '@' .. nonce) == 1 then
            heard[#heard + 1] = name
            heard[#heard + 1] = name .. '!'
          end
          if isFinal and (#old < n or old:find('\0', 1, true)) then
            local claim = name .. '@' .. nonce
            local payload = redis.call('HGET', own(worker), claim)
            if payload then back[#back + 1] = {claim, payload} end
          end
          out[#out + 1] = untouched and 1 or first
          return first
        end
        while ARGV[at] do
          local name, isFinal, details = ARGV[at], ARGV[at + 1] == '1', tonumber(ARGV[at + 5])
          local start, n = name:match(':(%d+):(%d+)$')
          if isFinal then ended[#ended + 1] = name .. '@' .. nonce end
          local note = {base = tonumber(start), details = at + 6, listed = at + 7 + 2 * details, failures = ARGV[at + 4]}
          local listed = tonumber(ARGV[note.listed - 1])
          note.unlisted = note.listed + 3 * listed + 1
          local unlisted = tonumber(ARGV[note.unlisted - 1])
          if isRunning then
            note.first = settle(name, start, tonumber(n), isFinal, ARGV[at + 2], ARGV[at + 3])
            note.isWhole = note.first == ARGV[at + 2]
            if details + listed + unlisted > 0 or note.failures ~= '' then notes[#notes + 1] = note end
          end
          at = note.unlisted + 2 * unlisted
        end
        if #ended > 0 then redis.call('HDEL', own(worker), unpack(ended)) end
        if #heard > 0 then redis.call('HDEL', tries(id), unpack(heard)) end
        if not isRunning then return {m[1] or 'gone'} end
        if new > 0 then
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
          local t = string.format('%d', now())
          redis.call('HSET', batch(id), 'last', t)
          local function list(urls, tails)
            local known, metas, latest, places = {}, {}, {}, {}
            local place = string.format('%d', t + lapse)
            local fresh = t .. ' ' .. t .. ' 1 '
            -- Of a list that is new to the set nothing is known; that is one look.
            local added = redis.call('SADD', K .. ':failed', unpack(urls))
            if added < #urls then known = redis.call('HMGET', K .. ':failed:meta', unpack(urls)) end
            for i, url in ipairs(urls) do
              local since, times = (latest[url] or known[i] or ''):match('^(%d+) %d+ (%d+) ')
              latest[url] = (since and since .. ' ' .. t .. ' ' .. (times + 1) .. ' ' or fresh) .. tails[i]
              metas[2 * i - 1] = url
              metas[2 * i] = latest[url]
              places[2 * i - 1], places[2 * i] = place, url
            end
            redis.call('HSET', K .. ':failed:meta', unpack(metas))
            local here, there = K .. ':failed:lapses', K .. ':failed:stays'
            if lapse == 0 then here, there = there, here end
            redis.call('ZREM', there, unpack(urls))
            redis.call('ZADD', here, unpack(places))
            -- More than it adds, so what has lapsed becomes less while failures come.
            sweepListed(2 * #urls)
          end
          -- The records of all jobs go into their chunks of 256 indices together.
          local seconds = math.floor((t - (tonumber(m[4]) or t)) / 1000)
          seconds = struct.pack('>I4', math.max(0, math.min(seconds, 4294967294)))
          local chunks, names = {}, {}
          local function record(first, last, tail)
            while first <= last do
              local name = string.format('%d', math.floor(first / 256))
              local stop = math.min(last, first - first % 256 + 255)
              if not chunks[name] then
                chunks[name] = {}
                names[#names + 1] = name
              end
              table.insert(chunks[name], string.char(first % 256, stop % 256) .. tail .. seconds)
              first = stop + 1
            end
          end
          for _, note in ipairs(notes) do
            local function isFirst(position) return note.first:byte(position + 1) ~= 0 end
            for i = 1, #note.failures, 5 do
              local from, to = note.failures:byte(i, i + 1)
              local tail = note.failures:sub(i + 2, i + 4)
              if note.isWhole then
                record(note.base + from, note.base + to, tail)
              else
                for position = from, to do
                  if isFirst(position) then record(note.base + position, note.base + position, tail) end
                end
              end
            end
            -- All of a kind in one command.
            local entries, room = {}, 0
            if note.listed > note.details + 1 then room = most - redis.call('HLEN', skipped(id)) end
            for i = note.details, note.listed - 3, 2 do
              if room <= 0 then break end
              if isFirst(ARGV[i]) then
                entries[#entries + 1] = string.format('%d', note.base + ARGV[i])
                entries[#entries + 1] = ARGV[i + 1]
                room = room - 1
              end
            end
            if #entries > 0 then redis.call('HSET', skipped(id), unpack(entries)) end
            local urls, tails = {}, {}
            for i = note.listed, note.unlisted - 4, 3 do
              if isFirst(ARGV[i]) then
                urls[#urls + 1] = ARGV[i + 1]
                tails[#tails + 1] = ARGV[i + 2]
              end
            end
            -- The list of failed URLs is no batch's: where it is broken the outcomes count all the same, and LISTED complains.
            if #urls > 0 then pcall(list, urls, tails) end
            local taken = {}
            for i = note.unlisted, note.unlisted + 2 * tonumber(ARGV[note.unlisted - 1]) - 2, 2 do
              if isFirst(ARGV[i]) then taken[#taken + 1] = ARGV[i + 1] end
            end
            if #taken > 0 then pcall(unlist, taken) end
          end
          if #names > 0 then
            local fields = {}
            for i, old in ipairs(redis.call('HMGET', records(id), unpack(names))) do
              fields[2 * i - 1] = names[i]
              fields[2 * i] = (old or '') .. table.concat(chunks[names[i]])
            end
            redis.call('HSET', records(id), unpack(fields))
          end
        end
        -- Also where all was settled before: the call that did it may have ended here, at a key of a wrong type.
        closeIfComplete(id)
        for _, job in ipairs(back) do giveBack(job[1], job[2]) end
        return out
        """#)

    /// What Redis said to one report.
    package struct Answer: Sendable {
        /// The outcomes that this call was first to settle, by position.
        package var first: [(position: Int, outcome: PrefetchOutcome)] = []
        /// Whether the batch is no longer running, or gone, or its name a later batch's.
        package var isOver = false
        /// Why Redis did not take it, or not all of it: it has to be sent again. nil: it was taken.
        package var refusal: String?
    }

    /// Reports groups of outcomes in one round trip. Returns for each the outcomes this call was first to settle, by position; nil
    /// where the batch is no longer running, or did not take them.
    package func report(
        _ reports: [Report], worker: String
    ) async throws(RedisError) -> [[(position: Int, outcome: PrefetchOutcome)]?] {
        try await report(reports, worker: worker, namesServer: false).answers.map {
            $0.isOver || $0.refusal != nil ? nil : $0.first
        }
    }

    /// The same; tells too which start of Redis has answered, where that is wanted.
    func report(
        _ reports: [Report], worker: String, namesServer: Bool
    ) async throws(RedisError) -> (answers: [Answer], server: String) {
        let groups = Self.groups(of: reports)
        let calls = groups.map { group in
            RedisScriptCall(
                Self.report, keys: [RedisArgument(keys.root)], arguments: Self.arguments(of: group, worker: worker))
        }
        let answer = try await patiently { () async throws(RedisError) in
            let (replies, server) =
                namesServer ? try await connection.runNamingServer(calls) : (try await connection.run(calls), "")
            return (try Self.withoutTransient(replies), server)
        }
        var results = [Answer](repeating: Answer(), count: reports.count)
        for (group, value) in zip(groups, answer.0) {
            let batch = group[0].report.batch.id
            // Whatever it is that nobody foresaw, it is of this batch: the reports of others count.
            let error = value.error?.asError
            if let error, error.code != .reply { throw error }
            let reply = value.array ?? []
            switch (error, reply.first?.string) {
            case (nil, "OK") where reply.count > group.count:
                for ((number, report), said) in zip(group, reply.dropFirst()) {
                    results[number].first += report.first(said)
                }
            case (nil, "BROKEN"):
                let message = reply.last?.string ?? ""
                notice(.broken(batch: batch, message: message))
                for (number, _) in group { results[number].refusal = message }
            case (nil, .some(let state)) where reply.count == 1:
                // A word for which there is no state is none of REPORT's.
                let isOver = state == "gone" || BatchStatus.State(rawValue: state) != nil
                for (number, _) in group {
                    if isOver { results[number].isOver = true } else { results[number].refusal = state }
                }
            default:
                let message = error?.message ?? "the reply is none of REPORT's"
                notice(.refused(batch: batch, message: message))
                for (number, _) in group { results[number].refusal = message }
            }
        }
        return (results, answer.1)
    }

    /// The reports in as many calls as it takes that none keeps Redis from everybody else for milliseconds: up to 16 jobs of one batch,
    /// and of what is written beside an outcome, which costs some 10 us a URL, up to 64. Only the last part of a report ends its job.
    private static func groups(of reports: [Report]) -> [[(number: Int, report: Report)]] {
        var groups: [[(number: Int, report: Report)]] = []
        var last: [BatchIdentity: (group: Int, heavy: Int)] = [:]
        for (number, report) in reports.enumerated() {
            for part in parts(of: report) {
                let count = part.settled.count { $0.isHeavy }
                if let (group, heavy) = last[part.batch], groups[group].count < 16, heavy + count <= Self.heavy,
                    groups[group][0].report.keepDetails == part.keepDetails, groups[group][0].report.lapse == part.lapse
                {
                    groups[group].append((number, part))
                    last[part.batch] = (group, heavy + count)
                } else {
                    last[part.batch] = (groups.count, count)
                    groups.append([(number, part)])
                }
            }
        }
        return groups
    }

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

    private static func arguments(of group: [(number: Int, report: Report)], worker: String) -> [RedisArgument] {
        let first = group[0].report
        var arguments = [
            RedisArgument(worker), RedisArgument(first.batch.id), RedisArgument(first.batch.nonce),
            RedisArgument(first.keepDetails), RedisArgument(first.lapse),
        ]
        for (_, report) in group { arguments += report.arguments() }
        return arguments
    }
}

extension PrefetchQueue.Report {
    /// What REPORT gets for this job.
    fileprivate func arguments() -> [RedisArgument] {
        var codes = [UInt8](repeating: 0, count: count)
        var sizes = [Int](repeating: 0, count: count)
        var details: [RedisArgument] = []
        var listed: [RedisArgument] = []
        var unlisted: [RedisArgument] = []
        for item in settled {
            codes[item.position] = item.outcome.rawValue
            sizes[item.position] = item.bytes
            guard item.isHeavy else { continue }
            let position = RedisArgument(item.position)
            // Nothing is kept of a batch that keeps no details.
            if keepDetails > 0, let failure = item.failure { details += [position, RedisArgument(failure.encoded())] }
            if let url = item.list {
                let status = item.failure?.httpStatus ?? 0
                let tail = "\(item.outcome.name) \(status) \(batch.id) \(item.failure?.detail ?? "")"
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
            RedisArgument(job), isFinal ? "1" : "0", RedisArgument(codes), RedisArgument(lengths),
            RedisArgument(FailureRecord.entries(of: settled)), RedisArgument(details.count / 2),
        ] + details + [RedisArgument(listed.count / 3)] + listed + [RedisArgument(unlisted.count / 2)] + unlisted
    }

    /// The outcomes REPORT was first to settle.
    fileprivate func first(_ said: RedisValue) -> [(position: Int, outcome: PrefetchOutcome)] {
        if said.int == 1 { return settled.map { ($0.position, $0.outcome) }.sorted { $0.position < $1.position } }
        return (said.bytes ?? []).enumerated().compactMap { position, code in
            PrefetchOutcome(code: code).map { (position, $0) }
        }
    }
}
