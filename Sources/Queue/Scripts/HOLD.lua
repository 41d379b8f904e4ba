#!lua flags=allow-oom
-- HOLD: no job of the batch is claimed for the next ten seconds; jobs only return to the list or end. If the repair
-- dies, any worker's REAP releases the hold.
-- ARGV: batch, token, "1" to begin, "" to go on.
-- Result: `OK` and the URLs pushed; `LOST` if it was released in between, or another repair has the batch.
-- Cost: O(ready batches).
-- Again: the same.

-- luacheck: read globals id token mine (of step.lua)
if not mine() then return {'LOST'} end
if ARGV[3] ~= '1' and redis.call('HEXISTS', K .. ':held', id) == 0 then return {'LOST'} end
redis.call('HSET', K .. ':held', id, now() + 10000)
takeOut(id)
return {'OK', redis.call('HGET', batch(id), 'pushed') or '0'}
