#!lua flags=allow-oom
-- NOTE: shares a worker's findings about hosts with all. A `good` host is removed; `slow` does not replace another
-- state that still holds, and its failures are a number of concurrent transfers. Beyond 1,000 hosts, notes that ended
-- two minutes ago are removed. `#v` counts the changes; heartbeats return it to all workers.
-- ARGV: (host, `silent`, `busy`, `slow` or `good`, ms from now until requests may start, ms since it is so, failures in
-- a row, code of the last error, its text) of each host; of a slow one in place of the last two the ms to its first
-- byte, now and at best.
-- Result: 1.
-- Cost: O(hosts).
-- Again: the same, and shared once more.

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
