package import Redis

extension PrefetchQueue {
    /// What became of a list that was to be added to an open batch.
    package enum AppendResult: Sendable, Equatable {
        /// It is one of the batch's lists; whether this call made it so, and how many URLs of the batch are pushed.
        case listed(ListSegment, isNew: Bool, pushed: Int)
        /// The batch takes no more lists: `sealed`, `done`, `cancelled`, `gone`, or `single` where it was not submitted open.
        case closed(String)
    }

    // APPEND: one more list for an open batch, behind all it has: indices and line numbers run on. Its URLs are pushed afterwards,
    // in the order of the lists, by whoever can read it.
    // ARGV: batch, nonce of this call, hash, URLs, lines, host, path, "1" where a list that is there to its end is added once more.
    // Result: {OK, its place, its element, "1" where it is new, URLs pushed} or {CLOSED, why}. A list with this hash that is there
    // is that one, so the same command twice adds it once. Again with the same nonce: the same. Cost: O(lists).
    private static let append = script(
        "APPEND", allowsOOM: false,
        #"""
        local id = ARGV[1]
        endDue()
        local m = redis.call('HMGET', batch(id), 'state', 'open', 'sealed', 'closing', 'pushed', 'total', 'lines')
        if not m[1] then return {'CLOSED', 'gone'} end
        if m[1] == 'cancelled' then return {'CLOSED', 'cancelled'} end
        if m[2] ~= '1' then return {'CLOSED', 'single'} end
        local all = redis.call('LRANGE', lists(id), 0, -1)
        local pushed = tonumber(m[5])
        for i = #all, 1, -1 do
          local base, n, hash, nonce = all[i]:match('^(%d+) %d+ (%d+) %d+ (%S+) (%S+) ')
          local isFed = base + n <= pushed
          if nonce == ARGV[2] or (hash == ARGV[3] and not (ARGV[8] == '1' and isFed)) then
            return {'OK', tostring(i - 1), all[i], '0', m[5]}
          end
        end
        if m[1] ~= 'running' then return {'CLOSED', m[1]} end
        if m[3] == '1' or m[4] == '1' then return {'CLOSED', 'sealed'} end
        local element = table.concat({m[6] or '0', m[7] or '0', ARGV[4], ARGV[5], ARGV[3], ARGV[2], ARGV[6], ARGV[7]}, ' ')
        redis.call('RPUSH', lists(id), element)
        redis.call('HINCRBY', batch(id), 'total', ARGV[4])
        redis.call('HINCRBY', batch(id), 'lines', ARGV[5])
        redis.call('HSET', batch(id), 'fed', now())
        if #all == 0 then redis.call('HSET', batch(id), 'list', ARGV[7], 'hash', ARGV[3]) end
        return {'OK', tostring(#all), element, '1', m[5]}
        """#)

    /// Adds a list to an open batch, where it is not there yet; its URLs are to be pushed then.
    ///
    /// * `nonce`: a word that no other call uses; with the same one the call may be repeated.
    /// * `again`: whether a list that is there, and is pushed to its end, is added once more.
    package func append(
        _ list: URLList, to batch: String, nonce: String, host: String, again: Bool = false
    ) async throws(RedisError) -> AppendResult {
        let reply =
            try await run(
                Self.append,
                [
                    RedisArgument(batch), RedisArgument(nonce), RedisArgument(list.hash), RedisArgument(list.total),
                    RedisArgument(list.lines), RedisArgument(host), RedisArgument(list.absolutePath), again ? "1" : "0",
                ]
            ).array ?? []
        guard reply.count == 5, let number = reply[1].int, let element = reply[2].string,
            let segment = ListSegment(number: number, element: element)
        else { return .closed(reply.last?.string ?? "gone") }
        return .listed(segment, isNew: reply[3].string == "1", pushed: reply[4].int ?? 0)
    }

    // CLOSE: an open batch takes no more lists; it is sealed as soon as every URL of those it has is pushed, here or by PUSH.
    // ARGV: batch. Result: {OK, total} where it is sealed, {WAITS, URLs pushed} where some are to be pushed, {CLOSED, why}.
    // Completes the batch where every URL has ended already. Again: as far as it has come meanwhile. Cost: O(1).
    private static let close = script(
        "CLOSE",
        #"""
        local id = ARGV[1]
        endDue()
        local m = redis.call('HMGET', batch(id), 'state', 'open', 'sealed')
        if not m[1] then return {'CLOSED', 'gone'} end
        if m[2] ~= '1' then return {'CLOSED', 'single'} end
        if m[3] ~= '1' then
          if m[1] ~= 'running' then return {'CLOSED', m[1]} end
          redis.call('HSET', batch(id), 'closing', '1')
          sealIfFed(id)
        end
        local n = redis.call('HMGET', batch(id), 'sealed', 'total', 'pushed')
        if n[1] == '1' then return {'OK', n[2]} end
        return {'WAITS', n[3]}
        """#)

    /// Says that an open batch gets no more lists. `pushed`: it is sealed, with so many URLs; `at`: so many are pushed, and with
    /// its last URL it will be.
    package func close(batch: String) async throws(RedisError) -> PushResult {
        let reply = try await run(Self.close, [RedisArgument(batch)]).array ?? []
        let value = reply.last?.string ?? ""
        switch reply.first?.string {
        case "OK": return .pushed(Int(value) ?? 0)
        case "WAITS": return .at(Int(value) ?? 0)
        default: return .closed(value)
        }
    }

    /// The lists of a batch that was submitted open, in their order; none of any other.
    package func lists(of batch: String) async throws(RedisError) -> [ListSegment] {
        let elements = try await read([["LRANGE", RedisArgument(keys.lists(batch)), "0", "-1"]])[0].get().array ?? []
        return elements.enumerated().compactMap { number, element in
            element.string.flatMap { ListSegment(number: number, element: $0) }
        }
    }

    // DUE: ends the batches whose deadline has passed, as every CLAIM, BEAT and PUSH does: for queues where no worker is.
    // No ARGV. Result: how many were due. Again: 0. Cost: O(those), at most 16.
    private static let due = script("DUE", "return endDue()")

    /// Ends the batches whose deadline has passed.
    package func endDue() async throws(RedisError) {
        _ = try await run(Self.due, [])
    }
}
