#!lua flags=allow-oom
-- RESUME: ends the pause of a batch, of the queue, or of a worker; each is separate.
-- ARGV: as PAUSE.
-- Result: `OK` and 1 if it was paused; `OVER state`, `GONE`.
-- Cost: O(1).
-- Again: `OK 0`.

local kind, id = ARGV[1], ARGV[2]
if kind == 'queue' then
  local was = redis.call('DEL', K .. ':paused')
  ring()
  return {'OK', tostring(was)}
end
if kind == 'worker' then
  if not redis.call('ZSCORE', K .. ':workers', id) then return {'GONE'} end
  return {'OK', tostring(redis.call('HDEL', K .. ':w:' .. id, 'paused'))}
end
local state = redis.call('HGET', batch(id), 'state')
if not state then return {'GONE'} end
if state ~= 'running' then return {'OVER', state} end
local was = redis.call('HDEL', batch(id), 'paused')
if redis.call('EXISTS', jobs(id)) == 1 then ready(id) end
return {'OK', tostring(was)}
