#!lua flags=allow-oom
-- RAISE: corrects the number of URLs pushed, and the total.
-- ARGV: batch, token, URLs pushed before, URLs pushed now, total or "".
-- Result: 1; 0 if URLs were pushed meanwhile.
-- Cost: O(1).
-- Again: 1.

-- luacheck: read globals id token mine (of step.lua)
local pushed = redis.call('HGET', batch(id), 'pushed') or '0'
if not mine() or (pushed ~= ARGV[3] and pushed ~= ARGV[4]) then return 0 end
redis.call('HSET', batch(id), 'pushed', ARGV[4])
if ARGV[5] ~= '' then redis.call('HSET', batch(id), 'total', ARGV[5]) end
return 1
