#!lua flags=allow-oom
-- RESERVE: reserves instants of a rate at which one worker may start requests to hosts. Unused instants are lost. None
-- within two seconds of the server's start: reservations it has forgotten may still be in use.
-- ARGV: (host, us between two instants, how many are wanted, horizon in us from now) of each host.
-- Result: (us from now to the first, how many) of each host; `-1 0` if all up to the horizon are taken.
-- Cost: O(hosts).
-- Again: other instants; those of the lost reply are unused.

local at = now() * 1000 + readClock().us
local ok, info = pcall(redis.call, 'INFO', 'server')
local uptime = ok and type(info) == 'string' and tonumber(info:match('uptime_in_seconds:(%d+)')) or 2
local out = {}
for i = 1, #ARGV, 4 do
  local key, interval = K .. ':rate:' .. ARGV[i] .. ' ' .. ARGV[i + 1], tonumber(ARGV[i + 1])
  local first = math.max(tonumber(redis.call('GET', key) or '0'), at)
  local n = math.min(tonumber(ARGV[i + 2]), math.ceil((at + tonumber(ARGV[i + 3]) - first) / interval))
  if n < 1 or uptime < 2 then
    out[#out + 1] = {-1, 0}
  else
    local after = first + n * interval
    redis.call('SET', key, string.format('%.0f', after), 'PX', math.ceil((after - at) / 1000) + 10000)
    out[#out + 1] = {string.format('%.0f', first - at), n}
  end
end
return out
