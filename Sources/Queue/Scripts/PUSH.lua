#!lua
-- PUSH: adds jobs to a batch's list. The last URL of an open batch that takes no more lists seals it.
-- ARGV: batch, number of URLs pushed before, window, number of URLs in these jobs, place and hash of their list ("":
-- the batch has one), jobs … (none: only asks if there is room).
-- Result: `OK n`, `FULL n`, `AT n` with the URLs pushed; `CLOSED why`.
-- Cost: O(jobs).
-- Again: `AT` with the number the first call led to.
--
-- The window is the most jobs the list may hold, or "auto": 1,024 shared by the running batches, at least 64. Unless it
-- is "all", the list also holds at most 24 MiB, with "auto" shared likewise, at least 1.5 MiB. An empty list accepts
-- any push.

local id = ARGV[1]
tick()
endDue()
local m = redis.call('HMGET', batch(id), 'pushed', 'state', 'sealed', 'open')
if not m[1] then return {'CLOSED', 'gone'} end
if m[2] ~= 'running' then return {'CLOSED', m[2]} end
redis.call('HSET', batch(id), 'fed', now())
if m[1] ~= ARGV[2] then return {'AT', m[1]} end
if m[3] == '1' then return {'CLOSED', 'sealed'} end
if m[4] == '1' and ARGV[5] == '' then return {'CLOSED', 'open'} end
if ARGV[5] ~= '' then
  -- Redis may have lost its last writes, and with them the list; another may be in its place.
  local place, hash = ARGV[5]:match('^(%d+) (%S+)$')
  local base, n, found = (redis.call('LINDEX', lists(id), place) or ''):match('^(%d+) %d+ (%d+) %d+ (%S+) ')
  local first = tonumber(m[1])
  if found ~= hash or first < tonumber(base) or first + tonumber(ARGV[4]) > base + n then
    return {'CLOSED', 'unlisted'}
  end
end
if ARGV[3] ~= 'all' then
  local most, bytes = tonumber(ARGV[3]), mostBytes
  if not most then
    most = math.max(64, math.floor(1024 / math.max(1, redis.call('SCARD', K .. ':running'))))
    bytes = bytes * most / 1024
  end
  local waiting = redis.call('LLEN', jobs(id))
  if waiting >= most or waiting > 0 and bytesOf(id) >= bytes then return {'FULL', m[1]} end
end
for i = 6, #ARGV, 500 do redis.call('LPUSH', jobs(id), unpack(ARGV, i, math.min(i + 499, #ARGV))) end
local pushed = redis.call('HINCRBY', batch(id), 'pushed', ARGV[4])
if ARGV[6] then ready(id) end
sealIfFed(id)
return {'OK', tostring(pushed)}
