#!lua
-- APPEND: adds a list to an open batch after the existing ones; indices and line numbers continue. Its URLs are pushed
-- later, in the order of the lists, by a process that can read the file.
-- ARGV: batch, nonce of this call, hash, URLs, lines, host, path, "1" if a list that is fully pushed may be added
-- again.
-- Result: `OK`, its place, its element, "1" if it is new, URLs pushed; or `CLOSED why`.
-- Cost: O(lists).
-- Again: the same, with the same nonce. A list with a known hash is not added twice, so the command can be repeated.

local id = ARGV[1]
endDue()
local m = redis.call('HMGET', batch(id), 'state', 'open', 'sealed', 'closing', 'pushed', 'total', 'lines')
if not m[1] then return {'CLOSED', 'gone'} end
if m[1] == 'cancelled' then return {'CLOSED', 'cancelled'} end
if m[2] ~= '1' then return {'CLOSED', 'single'} end
local all = redis.call('LRANGE', lists(id), 0, -1)
local pushed = tonumber(m[5])
for i = #all, 1, -1 do
  local base, n, hash, nonce = all[i]:match('^(%d+) %d+ (%d+) %d+ (%S+) (%S+) ')
  local isFed = base + n <= pushed
  if nonce == ARGV[2] or (hash == ARGV[3] and not (ARGV[8] == '1' and isFed)) then
    return {'OK', tostring(i - 1), all[i], '0', m[5]}
  end
end
if m[1] ~= 'running' then return {'CLOSED', m[1]} end
if m[3] == '1' or m[4] == '1' then return {'CLOSED', 'sealed'} end
local element = table.concat({m[6] or '0', m[7] or '0', ARGV[4], ARGV[5], ARGV[3], ARGV[2], ARGV[6], ARGV[7]}, ' ')
redis.call('RPUSH', lists(id), element)
redis.call('HINCRBY', batch(id), 'total', ARGV[4])
redis.call('HINCRBY', batch(id), 'lines', ARGV[5])
redis.call('HSET', batch(id), 'fed', now())
if #all == 0 then redis.call('HSET', batch(id), 'list', ARGV[7], 'hash', ARGV[3]) end
return {'OK', tostring(#all), element, '1', m[5]}
