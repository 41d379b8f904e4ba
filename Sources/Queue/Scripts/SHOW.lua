#!lua flags=allow-oom,no-writes
-- SHOW: a batch with all its counts at one moment.
-- ARGV: batch.
-- Result: time in ms, fields of the batch, counts of its workers, its hosts, waiting jobs, registered workers and the
-- ends of their leases, the record of each, 1 if the queue is paused.
-- Cost: seven commands, and one for each registered worker; nothing depends on the number of URLs.
-- Again: reads only.

local id, about = ARGV[1], {}
local workers = redis.call('ZRANGE', K .. ':workers', 0, 511, 'WITHSCORES')
for i = 1, #workers, 2 do about[#about + 1] = redis.call('HGETALL', K .. ':w:' .. workers[i]) end
return {
  now(), redis.call('HGETALL', batch(id)), redis.call('HGETALL', counts(id)), redis.call('HGETALL', hosts(id)),
  redis.call('LLEN', jobs(id)), workers, about, redis.call('EXISTS', K .. ':paused')
}
