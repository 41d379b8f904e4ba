#!lua
-- PUSH: adds jobs to a batch's list. The total of an open batch grows by their URLs; what its list is up to the last of
-- them is kept with it.
-- ARGV: batch, number of URLs pushed before, window, number of URLs in these jobs, about how many the list has or 0,
-- length and hash of the list up to the last of these or 0 and "", mark of its file or "", "1" if the list has grown
-- since its batch was made or sealed, jobs … (none: only asks if there is room).
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
local grows = ARGV[9] == '1' and ARGV[10]
if m[3] == '1' and not grows then return {'CLOSED', 'sealed'} end
if ARGV[3] ~= 'all' then
  local most, bytes = tonumber(ARGV[3]), mostBytes
  if not most then
    most = math.max(64, math.floor(1024 / math.max(1, redis.call('SCARD', K .. ':running'))))
    bytes = bytes * most / 1024
  end
  local waiting = redis.call('LLEN', jobs(id))
  if waiting >= most or waiting > 0 and bytesOf(id) >= bytes then return {'FULL', m[1]} end
end
for i = 10, #ARGV, 500 do redis.call('LPUSH', jobs(id), unpack(ARGV, i, math.min(i + 499, #ARGV))) end
local pushed = redis.call('HINCRBY', batch(id), 'pushed', ARGV[4])
if grows then redis.call('HSET', batch(id), 'sealed', '0', 'open', '1') end
if grows or ARGV[10] and m[4] == '1' then
  redis.call('HSET', batch(id), 'total', pushed, 'estimate', ARGV[5])
  if ARGV[7] ~= '' then redis.call('HSET', batch(id), 'length', ARGV[6], 'hash', ARGV[7], 'mark', ARGV[8]) end
end
if ARGV[10] then ready(id) end
return {'OK', tostring(pushed)}
