package import Redis

extension PrefetchQueue {
    /// Whose turn a batch has, and which of its jobs is next.
    package struct Precedence: Sendable, Equatable {
        package var priority: PrefetchPriority
        package var order: PrefetchOrder
    }

    /// What came of a change of precedence.
    package enum PrecedenceResult: Sendable, Equatable {
        /// What it was, and what it is now.
        case changed(from: Precedence, to: Precedence)
        /// The batch is over: `done` or `cancelled`.
        case over(String)
        /// Redis has no such batch.
        case gone
    }

    // REPRIORITISE: another priority or another order for a running batch, from the next claim on.
    // ARGV: batch, priority or "", order or "". Result: {OK, priority and order before, priority and order now}, {OVER, state} or
    // {GONE}. A batch that is ready moves to the end of the other ready list in the same step. Again: changes nothing more.
    // Cost: O(ready batches).
    private static let reprioritise = script(
        "REPRIORITISE",
        #"""
        local id = ARGV[1]
        local m = redis.call('HMGET', batch(id), 'state', 'priority', 'order', 'ready')
        if not m[1] then return {'GONE'} end
        if m[1] ~= 'running' then return {'OVER', m[1]} end
        local priority, order = m[2] or 'normal', m[3] or 'fifo'
        local out = {'OK', priority, order}
        if ARGV[3] ~= '' then
          order = ARGV[3]
          redis.call('HSET', batch(id), 'order', order)
        end
        if ARGV[2] ~= '' and ARGV[2] ~= priority then
          priority = ARGV[2]
          if m[4] == '1' then unready(id) end
          redis.call('HSET', batch(id), 'priority', priority)
          if m[4] == '1' then ready(id) end
        end
        out[4], out[5] = priority, order
        return out
        """#)

    /// Changes the priority of a running batch, its order, or both; nil: stays as it is.
    package func reprioritise(
        batch: String, priority: PrefetchPriority?, order: PrefetchOrder?
    ) async throws(RedisError) -> PrecedenceResult {
        let reply = try await run(
            Self.reprioritise,
            [RedisArgument(batch), RedisArgument(priority?.rawValue ?? ""), RedisArgument(order?.rawValue ?? "")])
        let words = (reply.array ?? []).compactMap(\.string)
        func precedence(_ start: Int) -> Precedence {
            Precedence(
                priority: PrefetchPriority(rawValue: words[start]) ?? .normal,
                order: PrefetchOrder(rawValue: words[start + 1]) ?? .fifo)
        }
        return switch words.first {
        case "OK" where words.count == 5: .changed(from: precedence(1), to: precedence(3))
        case "OVER": .over(words.last ?? "")
        default: .gone
        }
    }
}
