#!lua flags=allow-oom
-- BLAME: returns a job of a lost worker in parts: those that are to blame have one URL each, whose bytes were in a
-- decoder when the worker died, and have one more death under the mark; the others begin anew.
-- ARGV: worker, claim, then (name, payload, "1" if it is to blame) of each part.
-- Result: how many of the blamed had less than three such deaths before; 0 if the worker does not have the job.
-- Cost: O(parts).
-- Again: 0.

local id, _, _, nonce = parts(ARGV[2])
if redis.call('HDEL', own(ARGV[1]), ARGV[2]) == 0 then return 0 end
if not isOf(id, nonce) then return 0 end
local job, n = jobOf(ARGV[2]), 0
local before = redis.call('HMGET', tries(id), job, job .. '!')
redis.call('HDEL', tries(id), job, job .. '!', job .. '?', job .. '~', job .. '^')
for i = #ARGV - 2, 3, -3 do
  local name = ARGV[i]
  if giveBack(name .. '@' .. nonce, ARGV[i + 1]) and ARGV[i + 2] == '1' then
    local same = name == job
    local deaths, marks = same and number(before[1], 0) or 0, same and number(before[2], 0) or 0
    redis.call('HSET', tries(id), name, math.max(deaths, marks) + 1, name .. '!', marks + 1)
    if marks < 3 then n = n + 1 end
  end
end
return n
