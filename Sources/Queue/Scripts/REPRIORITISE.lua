#!lua flags=allow-oom
-- REPRIORITISE: changes priority or order of a running batch, from the next claim on. A ready batch moves to the end of
-- the other ready list in the same step.
-- ARGV: batch, priority or "", order or "".
-- Result: `OK`, priority and order before, priority and order now; `OVER state`, `GONE`.
-- Cost: O(ready batches).
-- Again: changes nothing.

local id = ARGV[1]
local m = redis.call('HMGET', batch(id), 'state', 'priority', 'order', 'ready')
if not m[1] then return {'GONE'} end
if m[1] ~= 'running' then return {'OVER', m[1]} end
local priority, order = m[2] or 'normal', m[3] or 'fifo'
local out = {'OK', priority, order}
if ARGV[3] ~= '' then
  order = ARGV[3]
  redis.call('HSET', batch(id), 'order', order)
end
if ARGV[2] ~= '' and ARGV[2] ~= priority then
  priority = ARGV[2]
  if m[4] == '1' then unready(id) end
  redis.call('HSET', batch(id), 'priority', priority)
  if m[4] == '1' then ready(id) end
end
out[4], out[5] = priority, order
return out
