#!lua flags=allow-oom
-- JOIN: a worker registers. What somebody of this name has left behind without a registration goes back to the lists.
-- ARGV: worker, lease in ms, field, value … about it.
-- Result: 1; 0 where the name is taken.
-- Cost: O(log workers), and what was left behind.
-- Again: 0: the worker takes another name, the first lapses.

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
