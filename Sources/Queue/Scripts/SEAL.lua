#!lua flags=allow-oom
-- SEAL: the list is complete. Completes the batch if every URL has ended already (also an empty batch).
-- ARGV: batch, total, length and hash of the list or 0 and "", entries of each of its files or "".
-- Result: `OK n`, `AT n` with the URLs pushed; `CLOSED why`.
-- Cost: O(1).
-- Again: the same.

local id = ARGV[1]
local m = redis.call('HMGET', batch(id), 'pushed', 'state', 'sealed')
if not m[1] then return {'CLOSED', 'gone'} end
if m[3] == '1' then return {'OK', m[1]} end
if m[2] ~= 'running' then return {'CLOSED', m[2]} end
if m[1] ~= ARGV[2] then return {'AT', m[1]} end
redis.call('HSET', batch(id), 'sealed', '1', 'total', ARGV[2], 'open', '0')
if ARGV[4] ~= '' then redis.call('HSET', batch(id), 'length', ARGV[3], 'hash', ARGV[4], 'files', ARGV[5]) end
closeIfComplete(id)
return {'OK', m[1]}
