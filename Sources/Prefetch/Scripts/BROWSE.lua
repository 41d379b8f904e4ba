#!lua flags=allow-oom,no-writes
-- BROWSE: the newest batches, and hosts in trouble.
-- ARGV: how many.
-- Result: time in ms, number of failed URLs, 1 where the queue is paused, hosts in trouble, then id and fields of each
-- batch.
-- Cost: five commands, and one a batch; O(hosts in trouble).
-- Again: reads only.

local out = {
  now(), redis.call('SCARD', K .. ':failed'), redis.call('EXISTS', K .. ':paused'), redis.call('HGETALL', K .. ':hosts')
}
for _, id in ipairs(redis.call('ZRANGE', K .. ':batches', 0, ARGV[1] - 1, 'REV')) do
  out[#out + 1] = id
  out[#out + 1] = redis.call('HGETALL', batch(id))
end
return out
