#!lua flags=allow-oom
-- PAGES: stores the robots.txt that a worker has read, for all, while those of the last hour have less than 8 MiB.
-- ARGV: (agent and site with a blank between, text, ms it is kept) of each site. Without a text only the "being read"
-- mark is removed, and with one for which there is no room.
-- Result: 1.
-- Cost: O(sites).
-- Again: the same.

local most = 8 * 1024 * 1024
-- Nothing is kept for longer than an hour: what is there fits into two of its sums.
local sum = K .. ':robots:sum'
redis.call('SET', sum, 0, 'PX', 3600000, 'NX')
for i = 1, #ARGV, 3 do
  local key = K .. ':robots:' .. ARGV[i]
  -- Redis keeps about 100 bytes beside a key and its value.
  local size = #key + #ARGV[i + 1] + 100
  if ARGV[i + 1] ~= '' and (tonumber(redis.call('GET', sum)) or 0) + size <= most then
    redis.call('INCRBY', sum, size)
    redis.call('SET', key, ARGV[i + 1], 'PX', math.min(tonumber(ARGV[i + 2]) or 0, 3600000))
  elseif (redis.call('GET', key) or ''):sub(1, 1) == '?' then
    redis.call('DEL', key)
  end
end
return 1
