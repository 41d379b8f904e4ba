#!lua flags=allow-oom
-- REMOVE: deletes every key of a batch that is over; a batch it retried loses the link, and its own `keep` starts now.
-- Images and entries in the list of failed URLs stay.
-- ARGV: batch.
-- Result: `OK`, `GONE`, `RUNNING`, or `RETRIED` and by which.
-- Cost: O(1), the memory is freed in the background.
-- Again: `GONE`.

local id = ARGV[1]
local m = redis.call('HMGET', batch(id), 'state', 'retry_of', 'retried_by', 'slot')
if m[1] == 'running' then return {'RUNNING'} end
if m[3] and redis.call('HGET', batch(m[3]), 'retry_of') == id then return {'RETRIED', m[3]} end
if m[2] and redis.call('HGET', batch(m[2]), 'retried_by') == id then
  redis.call('HDEL', batch(m[2]), 'retried_by')
  keepFor(m[2], tonumber(redis.call('HGET', batch(m[2]), 'keep') or '0'))
end
if m[4] and redis.call('HGET', K .. ':slots', m[4]) == id then redis.call('HDEL', K .. ':slots', m[4]) end
unready(id)
redis.call('UNLINK', jobs(id), tries(id), unpack(results(id)))
redis.call('ZREM', K .. ':batches', id)
redis.call('ZREM', K .. ':deadlines', id)
redis.call('SREM', K .. ':running', id)
return {m[1] and 'OK' or 'GONE'}
