#!lua flags=allow-oom
-- TAKE: begins the repair of a batch. An unknown state becomes `running`.
-- ARGV: batch, token.
-- Result: `OK`, `BUSY`, `GONE`.
-- Cost: O(1).
-- Again: `OK`.

-- luacheck: read globals id token mine (of step.lua)
if redis.call('EXISTS', batch(id)) == 0 then return 'GONE' end
local m = redis.call('HMGET', batch(id), 'repair', 'state')
local owner, ends = (m[1] or ''):match('^(%S+) (%d+)$')
if owner and owner ~= token and tonumber(ends) > now() then return 'BUSY' end
redis.call('HSET', batch(id), 'repair', token .. ' ' .. (now() + 60000))
redis.call('HDEL', batch(id), 'broken', 'filled')
if m[2] ~= 'running' and m[2] ~= 'done' and m[2] ~= 'cancelled' then
  redis.call('HSET', batch(id), 'state', 'running')
end
return 'OK'
