#!lua flags=allow-oom
-- FINISH: ends a repair. Sets, slot and ready lists are made to agree with the batch's state; it is done if its last
-- URL has ended. The hold is released first, so also if a key of a wrong type fails the rest.
-- ARGV: batch, token.
-- Result: its state, and the number of sets and lists that were wrong; 0 and no change if another repair has taken
-- over.
-- Cost: O(log batches), and for a batch that is over the deletion of its list.
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
