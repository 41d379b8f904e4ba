#!lua
-- REFILL: pushes jobs for URLs that were in none, in the order of their indices, to the end that is popped.
-- ARGV: batch, token, index after the last of them, jobs …
-- Result: `OK`, `FULL`, `CLOSED`.
-- Cost: O(jobs).
-- Again: `OK`, and nothing more.

-- luacheck: read globals id token mine (of step.lua)
local m = redis.call('HMGET', batch(id), 'state', 'filled', 'order')
if not mine() or m[1] ~= 'running' then return 'CLOSED' end
if tonumber(m[2] or '0') >= tonumber(ARGV[3]) then return 'OK' end
if redis.call('LLEN', jobs(id)) >= 4096 or bytesOf(id) >= mostBytes then return 'FULL' end
for i = #ARGV, 4, -1 do redis.call(m[3] == 'lifo' and 'LPUSH' or 'RPUSH', jobs(id), ARGV[i]) end
redis.call('HSET', batch(id), 'filled', ARGV[3])
ready(id)
return 'OK'
