#!lua flags=allow-oom
-- PAUSE: stops claims from a batch, from the whole queue, or by a worker. Claimed jobs are not touched: workers learn
-- of it in the reply to their next heartbeat, finish transfers that have begun and give the rest back.
-- ARGV: `batch`, `queue` or `worker`, id or name.
-- Result: `OK` and 1 if it was not paused before; `OVER state`, `GONE`.
-- Cost: O(ready batches).
-- Again: `OK 0`.
--
-- The bell is deleted with the last ready batch or with the queue: workers then block in their wait for it.

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
