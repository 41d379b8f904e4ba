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
        /// What dashboards count, see ``ReportTally``; nil = nothing.
        var tally: ReportTally?

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
    // per URL that is not 0 (its length), number of details, {position, detail}…, number of URLs to list, {position, URL, meta
    // tail}…, {position, URL}… to take off the list, and perhaps a tally (ReportTally).
    // Result: {OK, one byte per URL: the outcome where this call was first to settle it, else 0} or {state, ""}.
    // For exactly the URLs it is first to settle it writes the outcome, adds to the counts of the batch and of the worker, keeps
    // the detail and changes the failed set; then it completes the batch if that was the last one. Again, or from a worker that
    // was reaped in between: changes nothing more. Cost: O(URLs).
    private static let report = script(
        "REPORT",
        tallying + #"""
            local worker, name = ARGV[1], ARGV[2]
            local id, base, n = parts(name)
            if ARGV[3] == '1' then redis.call('HDEL', own(worker), name) end
            local state = redis.call('HGET', batch(id), 'state')
            if state ~= 'running' then return {state or 'gone', ''} end
            local old = {redis.call('GETRANGE', outcomes(id), base, base + n - 1):byte(1, -1)}
            local said = {ARGV[5]:byte(1, -1)}
            local first, count, new, skippedNew, bytes, at = {}, {}, 0, 0, 0, 1
            for i = 1, n do
              local code = said[i] or 0
              first[i] = 0
              old[i] = old[i] or 0
              if code ~= 0 then
                if old[i] == 0 then
                  old[i], first[i], new = code, code, new + 1
                  count[code] = (count[code] or 0) + 1
                  if code > 3 then skippedNew = skippedNew + 1 end
                  bytes = bytes + struct.unpack('>I4', ARGV[6], at)
                end
                at = at + 4
              end
            end
            if new > 0 then
              redis.call('SETRANGE', outcomes(id), base, string.char(unpack(old)))
              for code, c in pairs(count) do
                redis.call('HINCRBY', batch(id), 'o' .. code, c)
                redis.call('HINCRBY', counts(id), worker .. ':' .. code, c)
              end
              redis.call('HINCRBY', batch(id), 'finished', new)
              if skippedNew > 0 then redis.call('HINCRBY', batch(id), 'skipped', skippedNew) end
              if bytes > 0 then
                redis.call('HINCRBY', batch(id), 'bytes', bytes)
                redis.call('HINCRBY', counts(id), worker .. ':bytes', bytes)
              end
              redis.call('HDEL', tries(id), name, name .. '!')
              local t, a = now(), 8
              redis.call('HSET', batch(id), 'last', t)
              for _ = 1, tonumber(ARGV[7]) do
                if first[tonumber(ARGV[a]) + 1] ~= 0 and redis.call('HLEN', skipped(id)) < tonumber(ARGV[4]) then
                  redis.call('HSET', skipped(id), base + ARGV[a], ARGV[a + 1])
                end
                a = a + 2
              end
              local listed = tonumber(ARGV[a])
              a = a + 1
              for _ = 1, listed do
                if first[tonumber(ARGV[a]) + 1] ~= 0 then
                  local url = ARGV[a + 1]
                  local since, times = (redis.call('HGET', K .. ':failed:meta', url) or ''):match('^(%d+) %d+ (%d+) ')
                  redis.call('SADD', K .. ':failed', url)
                  redis.call('HSET', K .. ':failed:meta', url,
                    (since or t) .. ' ' .. t .. ' ' .. ((times or 0) + 1) .. ' ' .. ARGV[a + 2])
                end
                a = a + 3
              end
              while a < #ARGV do
                if first[tonumber(ARGV[a]) + 1] ~= 0 then
                  redis.call('SREM', K .. ':failed', ARGV[a + 1])
                  redis.call('HDEL', K .. ':failed:meta', ARGV[a + 1])
                end
                a = a + 2
              end
              if (#ARGV - a) % 2 == 0 then tally(id, new, ARGV[#ARGV]) end
              closeIfComplete(id)
            end
            return {'OK', string.char(unpack(first))}
            """#)

    /// Reports groups of outcomes in one round trip. Returns for each the outcomes this call was first to settle, by position; nil
    /// where the batch is no longer running.
    package func report(
        _ reports: [Report], worker: String
    ) async throws(RedisError) -> [[(position: Int, outcome: PrefetchOutcome)]?] {
        let calls = reports.map { report in
            RedisScriptCall(
                Self.report, keys: [RedisArgument(keys.root)], arguments: Self.arguments(of: report, worker: worker))
        }
        var results: [[(position: Int, outcome: PrefetchOutcome)]?] = []
        let values = try await patiently { () async throws(RedisError) in try await connection.run(calls) }
        for value in values {
            let reply = try value.get().array ?? []
            guard reply.first?.string == "OK", let codes = reply.last?.bytes else {
                results.append(nil)
                continue
            }
            results.append(
                codes.enumerated().compactMap { position, code in
                    PrefetchOutcome(rawValue: code).map { (position, $0) }
                })
        }
        return results
    }

    /// Notes an address the policy refused, for whoever watches the batch. Again: the same.
    package func noteRefusal(batch: String, host: String, message: String) async throws(RedisError) {
        _ = try await read([
            ["HSETNX", RedisArgument(keys.refused(batch)), RedisArgument(host), RedisArgument(message)]
        ])[0].get()
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
        for (code, size) in zip(codes, sizes) where code != 0 {
            let size = UInt32(clamping: size)
            lengths += [UInt8(size >> 24), UInt8(size >> 16 & 255), UInt8(size >> 8 & 255), UInt8(size & 255)]
        }
        return [
            RedisArgument(worker), RedisArgument(report.job), report.isFinal ? "1" : "0",
            RedisArgument(report.keepDetails),
            RedisArgument(codes), RedisArgument(lengths), RedisArgument(details.count / 2),
        ] + details + [RedisArgument(listed.count / 3)] + listed + unlisted
            + (report.tally.map { [RedisArgument($0.encoded)] } ?? [])
    }
}
