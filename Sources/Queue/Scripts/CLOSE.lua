#!lua flags=allow-oom
-- CLOSE: an open batch takes no more lists; it is sealed as soon as every URL of those it has is pushed, here or by
-- PUSH. Completes the batch where every URL has ended already.
-- ARGV: batch.
-- Result: `OK total` where it is sealed, `WAITS n` where only n URLs are pushed, `CLOSED why`.
-- Cost: O(1).
-- Again: as far as it has come meanwhile.

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
