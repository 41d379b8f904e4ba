#!lua flags=allow-oom
-- JOIN: registers a worker. Jobs left under its name without a registration go back to their lists.
-- ARGV: worker, lease in ms, field, value … of its record.
-- Result: 1; 0 if the name is taken.
-- Cost: O(log workers), and the jobs left.
-- Again: 0: the worker takes another name, the first registration expires.

tick()
local joined = redis.call('ZADD', K .. ':workers', 'NX', now() + tonumber(ARGV[2]), ARGV[1])
if joined == 1 then
  local left = redis.call('HGETALL', own(ARGV[1]))
  redis.call('DEL', K .. ':w:' .. ARGV[1], own(ARGV[1]))
  for i = 1, #left, 2 do
    if left[i]:sub(1, 1) ~= '#' then pcall(giveBack, left[i], left[i + 1]) end
  end
  redis.pcall('ZREM', K .. ':gone', ARGV[1])
  redis.call('HSET', K .. ':w:' .. ARGV[1], 'since', now(), 'state', 'running', 'lease', ARGV[2], unpack(ARGV, 3))
end
return joined
