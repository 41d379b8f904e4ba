#!lua flags=allow-oom
-- WITNESSES: URLs whose image a worker has fetched in the last minute, so that others can tell whether their own
-- network is to blame for what they fail at. Adds those of the caller; 64 are kept.
-- ARGV: most that are returned, then notes (a rate of the host or `-`, and the URL, with a blank between).
-- Result: registered workers, then (note, ms since then) of each, newest first.
-- Cost: O(notes × log 64).
-- Again: the same.

local key, t = K .. ':witnesses', now()
for i = 2, #ARGV do redis.call('ZADD', key, t, ARGV[i]) end
if #ARGV > 1 then
  redis.call('ZREMRANGEBYRANK', key, 0, -65)
  redis.call('PEXPIRE', key, 60000)
end
local out = {redis.call('ZCARD', K .. ':workers')}
local known = redis.call('ZRANGE', key, '+inf', t - 60000, 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[1], 'WITHSCORES')
for i = 1, #known, 2 do out[#out + 1] = {known[i], math.max(0, t - tonumber(known[i + 1]))} end
return out
