#!lua flags=allow-oom
-- CLOSE: an open batch takes no more lists; it is sealed once every URL of its lists is pushed, here or by PUSH, and
-- completes if every URL has ended already.
-- ARGV: batch.
-- Result: `OK total` if it is sealed, `WAITS n` if only n URLs are pushed, `CLOSED why`.
-- Cost: O(1).
-- Again: the state at that time.

local id = ARGV[1]
endDue()
local m = redis.call('HMGET', batch(id), 'state', 'open', 'sealed')
if not m[1] then return {'CLOSED', 'gone'} end
if m[2] ~= '1' then return {'CLOSED', 'single'} end
if m[3] ~= '1' then
  if m[1] ~= 'running' then return {'CLOSED', m[1]} end
  redis.call('HSET', batch(id), 'closing', '1')
  sealIfFed(id)
end
local n = redis.call('HMGET', batch(id), 'sealed', 'total', 'pushed')
if n[1] == '1' then return {'OK', n[2]} end
return {'WAITS', n[3]}
