#!lua flags=allow-oom
-- SPLIT: replaces a job that ended three workers by parts of it, to separate the URL that does it from its neighbours.
-- The parts start with two deaths: the next one splits again.
-- ARGV: worker, claim, then (name, payload) of each part.
-- Result: 1; 0 if the worker does not have the job.
-- Cost: O(parts).
-- Again: 0.

local id, _, _, nonce = parts(ARGV[2])
if redis.call('HDEL', own(ARGV[1]), ARGV[2]) == 0 then return 0 end
if not isOf(id, nonce) then return 1 end
local job = jobOf(ARGV[2])
redis.call('HDEL', tries(id), job, job .. '!', job .. '?', job .. '~', job .. '^')
for i = #ARGV - 1, 3, -2 do
  if giveBack(ARGV[i] .. '@' .. nonce, ARGV[i + 1]) then redis.call('HSET', tries(id), ARGV[i], '2') end
end
return 1
