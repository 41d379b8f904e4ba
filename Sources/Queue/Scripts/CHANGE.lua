#!lua flags=allow-oom
-- CHANGE: changes settings of a running batch. Its priority and its order hold from the next claim on: a ready batch
-- moves to the end of the other ready list in the same step. `limit` (ms) sets its deadline from now on. Workers with
-- its jobs see `changes` grow in the reply to their next heartbeat, and read its settings again.
-- ARGV: batch, its `options` as they were read, field, value … of its hash.
-- Result: `OK`; `STALE` if `options` would be replaced and are others meanwhile; `OVER state`, `GONE`.
-- Cost: O(fields + ready batches).
-- Again: the same; a deadline counts from the last call.

local id, wanted = ARGV[1], {}
for i = 3, #ARGV, 2 do wanted[ARGV[i]] = ARGV[i + 1] end
local m = redis.call('HMGET', batch(id), 'state', 'priority', 'ready', 'options', 'changes')
if not m[1] then return {'GONE'} end
if m[1] ~= 'running' then return {'OVER', m[1]} end
local options = m[4] or ''
if wanted.options and wanted.options ~= options and ARGV[2] ~= options then return {'STALE'} end
redis.call('ZCARD', K .. ':deadlines')
local isMoved = m[3] == '1' and wanted.priority and wanted.priority ~= (m[2] or 'normal')
if isMoved then unready(id) end
redis.call('HSET', batch(id), 'changes', number(m[5], 0) + 1, unpack(ARGV, 3))
if isMoved then ready(id) end
if wanted.limit then
  local deadline = now() + number(wanted.limit, 0)
  redis.call('HSET', batch(id), 'deadline', deadline)
  redis.call('ZADD', K .. ':deadlines', deadline, id)
end
return {'OK'}
