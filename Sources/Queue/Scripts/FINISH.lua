#!lua flags=allow-oom
-- FINISH: the end of a repair. The sets, the slot and the ready lists become what the batch's state says; it is done
-- where its last URL has ended. The batch is let go first, so that it is also where a key of a wrong type ends the
-- rest.
-- ARGV: batch, token.
-- Result: its state, and in how many sets and lists it was not as it must be; 0 and no change where another repair has
-- the batch meanwhile.
-- Cost: O(log batches), and of a batch that is over the deletion of its list.
-- Again: the same state, 0.

-- luacheck: read globals id token mine (of step.lua)
local m = redis.call('HMGET', batch(id), 'state', 'slot', 'created', 'repair')
if m[4] and m[4]:sub(1, #token + 1) ~= token .. ' ' then return {m[1], '0'} end
redis.call('HDEL', batch(id), 'repair', 'filled')
redis.call('HDEL', K .. ':held', id)
local wrong = redis.call('ZADD', K .. ':batches', 'NX', number(m[3], now()), id)
local has = m[2] and redis.call('HGET', K .. ':slots', m[2])
takeOut(id)
if m[1] == 'running' then
  wrong = wrong + redis.call('SADD', K .. ':running', id)
  if m[2] and (not has or redis.call('HGET', batch(has), 'state') ~= 'running') then
    redis.call('HSET', K .. ':slots', m[2], id)
    wrong = wrong + 1
  end
  if redis.call('LLEN', jobs(id)) > 0 then ready(id) end
  closeIfComplete(id)
else
  wrong = wrong + redis.call('SREM', K .. ':running', id) + redis.call('DEL', jobs(id), tries(id))
    + redis.call('ZREM', K .. ':deadlines', id)
  if has == id then wrong = wrong + redis.call('HDEL', K .. ':slots', m[2]) end
end
return {redis.call('HGET', batch(id), 'state'), tostring(wrong)}
