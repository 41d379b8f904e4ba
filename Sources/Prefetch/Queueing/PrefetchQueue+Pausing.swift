package import Redis

extension PrefetchQueue {
    /// What is paused and goes on.
    package enum PauseTarget: Sendable, Equatable {
        case queue
        case batch(String)
        case worker(String)

        fileprivate var arguments: [RedisArgument] {
            switch self {
            case .queue: ["queue", ""]
            case .batch(let id): ["batch", RedisArgument(id)]
            case .worker(let name): ["worker", RedisArgument(name)]
            }
        }
    }

    /// What came of it.
    package enum PauseResult: Sendable, Equatable {
        /// It is so now; whether it was not before.
        case done(isNew: Bool)
        /// The batch is over: `done` or `cancelled`.
        case over(String)
        /// Redis has no such batch, or no such worker is registered.
        case gone
    }

    // PAUSE: nothing more is claimed of a batch, of the whole queue, or by a worker. What was claimed is not touched: workers are told
    // with their next sign of life, end what has begun, and give the rest back.
    // ARGV: "batch", "queue" or "worker", id or name. Result: {OK, "1" where it was not paused before}, {OVER, state} or {GONE}.
    // Again: OK, "0". Cost: O(ready batches).
    //
    // The bell falls silent with the last batch that is ready, or with the queue: workers then sleep in their look at it.
    private static let pause = script(
        "PAUSE",
        #"""
        local kind, id = ARGV[1], ARGV[2]
        if kind == 'queue' then
          local isNew = redis.call('SET', K .. ':paused', now(), 'NX')
          redis.call('DEL', K .. ':bell')
          return {'OK', isNew and '1' or '0'}
        end
        if kind == 'worker' then
          if not redis.call('ZSCORE', K .. ':workers', id) then return {'GONE'} end
          return {'OK', tostring(redis.call('HSET', K .. ':w:' .. id, 'paused', '1'))}
        end
        local state = redis.call('HGET', batch(id), 'state')
        if not state then return {'GONE'} end
        if state ~= 'running' then return {'OVER', state} end
        local isNew = redis.call('HSET', batch(id), 'paused', '1')
        unready(id)
        return {'OK', tostring(isNew)}
        """#)

    /// Pauses a batch, the queue or a worker.
    package func pause(_ target: PauseTarget) async throws(RedisError) -> PauseResult {
        Self.pauseResult(try await run(Self.pause, target.arguments))
    }

    // RESUME: the end of a pause, each of its own: of a batch, of the queue, of a worker.
    // ARGV: as PAUSE. Result: {OK, "1" where it was paused}, {OVER, state} or {GONE}. Again: OK, "0". Cost: O(1).
    private static let resume = script(
        "RESUME",
        #"""
        local kind, id = ARGV[1], ARGV[2]
        if kind == 'queue' then
          local was = redis.call('DEL', K .. ':paused')
          ring()
          return {'OK', tostring(was)}
        end
        if kind == 'worker' then
          if not redis.call('ZSCORE', K .. ':workers', id) then return {'GONE'} end
          return {'OK', tostring(redis.call('HDEL', K .. ':w:' .. id, 'paused'))}
        end
        local state = redis.call('HGET', batch(id), 'state')
        if not state then return {'GONE'} end
        if state ~= 'running' then return {'OVER', state} end
        local was = redis.call('HDEL', batch(id), 'paused')
        if redis.call('EXISTS', jobs(id)) == 1 then ready(id) end
        return {'OK', tostring(was)}
        """#)

    /// Lets a batch, the queue or a worker go on.
    package func resume(_ target: PauseTarget) async throws(RedisError) -> PauseResult {
        Self.pauseResult(try await run(Self.resume, target.arguments))
    }

    private static func pauseResult(_ reply: RedisValue) -> PauseResult {
        let words = (reply.array ?? []).compactMap(\.string)
        return switch words.first {
        case "OK": .done(isNew: words.last == "1")
        case "OVER": .over(words.last ?? "")
        default: .gone
        }
    }
}
