#!lua flags=allow-oom,no-writes
-- SNAPSHOT: everything `fsck` checks of a batch, at one moment.
-- ARGV: batch, last index of the outcomes to return (-1 = all), workers …
-- Result: hash, outcomes, details kept, counts of workers, jobs, elements of the bell, whether it is in the set of
-- running batches, registered workers, of the ready lists high, normal and low (elements, occurrences of the batch),
-- whether the queue is paused, deaths of its jobs, records if all outcomes are returned, then the claims of each
-- worker.
-- Cost: O(all that).
-- Again: reads only.
--
-- A script, since a Redis at maxmemory refuses every command inside MULTI.

local id = ARGV[1]
local out = {
  redis.call('HGETALL', batch(id)), redis.call('GETRANGE', outcomes(id), 0, ARGV[2]),
  redis.call('HLEN', skipped(id)), redis.call('HGETALL', counts(id)), redis.call('LRANGE', jobs(id), 0, -1),
  redis.call('LLEN', K .. ':bell'), redis.call('SISMEMBER', K .. ':running', id),
  redis.call('ZRANGE', K .. ':workers', 0, -1),
}
for _, p in ipairs({'high', 'normal', 'low'}) do
  local list = K .. ':ready:' .. p
  out[#out + 1] = {redis.call('LLEN', list), #redis.call('LPOS', list, id, 'COUNT', 0)}
end
out[#out + 1] = redis.call('EXISTS', K .. ':paused')
out[#out + 1] = redis.call('HGETALL', tries(id))
out[#out + 1] = ARGV[2] == '-1' and redis.call('HGETALL', records(id)) or {}
for i = 3, #ARGV do out[#out + 1] = redis.call('HGETALL', own(ARGV[i])) end
return out
