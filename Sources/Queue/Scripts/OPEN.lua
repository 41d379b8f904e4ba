#!lua
-- OPEN: creates a batch, and in the same step cancels a running batch that has the slot and links the batch named in
-- a field `retry_of`. A field `limit` (ms) sets its deadline. With `open` = 1 its total grows until SEAL. A key of a
-- wrong type makes it fail before it writes anything. Of the set of batches it removes expired ones, among 16 that
-- it looks at.
-- ARGV: wanted id, nonce of this call, "1" if exactly this id is wanted, slot or "", field, value … of its hash.
-- Result: the wanted id, or with `.2`, `.3` … if that is taken, and the batch that was cancelled for its slot or "";
-- nil if exactly this id is wanted and taken, or `retry_of` is gone, running or has a retry.
-- Cost: O(fields + batches of the same list), and the deletion of the cancelled batch's job list.
-- Again: the same with the same nonce; cancels nothing.

tick()
local id, n = ARGV[1], 1
while true do
  local nonce = redis.call('HGET', batch(id), 'nonce')
  if nonce == ARGV[2] then return {id, redis.call('HGET', batch(id), 'replaced') or ''} end
  if not nonce then break end
  if ARGV[3] == '1' then return false end
  n = n + 1
  id = ARGV[1] .. '.' .. n
end
local slot, replaced, of = ARGV[4], ''
-- Type checks before the first write: a script that fails in the middle leaves half a batch behind.
redis.call('ZCARD', K .. ':batches')
redis.call('SCARD', K .. ':running')
redis.call('ZCARD', K .. ':deadlines')
local last = slot ~= '' and redis.call('HGET', K .. ':slots', slot)
if last and redis.call('HGET', batch(last), 'state') == 'running' then
  for _, p in ipairs({'high', 'normal', 'low'}) do redis.call('LLEN', K .. ':ready:' .. p) end
  replaced = last
end
for i = 5, #ARGV, 2 do if ARGV[i] == 'retry_of' then of = ARGV[i + 1] end end
if of then
  local m = redis.call('HMGET', batch(of), 'state', 'retried_by')
  if not m[1] or m[1] == 'running' then return false end
  if m[2] and redis.call('HGET', batch(m[2]), 'retry_of') == of then return false end
  redis.call('HSET', batch(of), 'retried_by', id)
  keepFor(of, 0)
end
if replaced ~= '' then close(replaced, 'cancelled', 'slot') end
if slot ~= '' then redis.call('HSET', K .. ':slots', slot, id) end
local t = now()
redis.call('HSET', batch(id), 'nonce', ARGV[2], 'state', 'running', 'sealed', '0', 'pushed', '0', 'finished', '0',
  'skipped', '0', 'bytes', '0', 'created', t, 'fed', t, unpack(ARGV, 5))
if slot ~= '' then redis.call('HSET', batch(id), 'slot', slot, 'replaced', replaced) end
local f = redis.call('HMGET', batch(id), 'limit')
if f[1] then
  redis.call('HSET', batch(id), 'deadline', t + tonumber(f[1]))
  redis.call('ZADD', K .. ':deadlines', t + tonumber(f[1]), id)
end
redis.call('ZADD', K .. ':batches', t, id)
for _, old in ipairs(redis.call('ZRANDMEMBER', K .. ':batches', 16)) do
  if redis.call('EXISTS', batch(old)) == 0 then redis.call('ZREM', K .. ':batches', old) end
end
redis.call('SADD', K .. ':running', id)
return {id, replaced}
