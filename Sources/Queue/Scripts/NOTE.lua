#!lua flags=allow-oom
-- NOTE: what a worker found out about hosts, for all. A host that is good is taken out; slow is less than what is said
-- of it already and still holds (of a slow one the failures are transfers at once); of those beyond 1,000 the ones
-- whose time is long over go. `#v` counts the changes: the beat tells it to all.
-- ARGV: (host, `silent`, `busy`, `slow` or `good`, ms from now until which nothing begins, ms since when it is so,
-- failures in a row, code of the last error, its sentence) of each host.
-- Result: 1.
-- Cost: O(hosts).
-- Again: the same, and told once more.

local key, t = K .. ':hosts', now()
local function holds(note)
  local state, till = (note or ''):match('^(%a+) (%d+) ')
  return state and state ~= 'slow' and tonumber(till) > t
end
for i = 1, #ARGV, 7 do
  if ARGV[i + 1] == 'good' then
    redis.call('HDEL', key, ARGV[i])
  elseif ARGV[i + 1] ~= 'slow' or not holds(redis.call('HGET', key, ARGV[i])) then
    redis.call('HSET', key, ARGV[i], table.concat({ARGV[i + 1], t + tonumber(ARGV[i + 2]), t - tonumber(ARGV[i + 3]),
      ARGV[i + 4], ARGV[i + 5], ARGV[i + 6]}, ' '))
  end
end
if redis.call('HLEN', key) > 1000 then
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local till = tonumber(all[i + 1]:match('^%a+ (%d+) '))
    if all[i] ~= '#v' and (not till or till + 120000 < t) then redis.call('HDEL', key, all[i]) end
  end
end
redis.call('HINCRBY', key, '#v', 1)
redis.call('EXPIRE', key, 3600)
return 1
