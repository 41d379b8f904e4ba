#!lua flags=allow-oom
-- UNSTORED: a worker could not store the image of a URL of its job, though its disk takes others. Tells whose turn it
-- is: every registered worker that works, not paused, in trouble or held, tries it once; one alone tries it twice.
-- ARGV: worker, claim, position of the URL in the job, how often it has tried it.
-- Result: `LEAVE` it to the others, `AGAIN` or `END`; `LEAVE` if the worker does not have the claim, or the batch is
-- over.
-- Cost: O(workers + such URLs of the job).
-- Again: the same.

local worker, claim, position, tried = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local id, _, _, nonce = parts(claim)
if redis.call('HEXISTS', own(worker), claim) == 0 or not isOf(id, nonce) then return 'LEAVE' end
if redis.call('HGET', batch(id), 'state') ~= 'running' then return 'LEAVE' end
local field, lines, failed = jobOf(claim) .. '?', {}, {}
for at, n, name in (redis.call('HGET', tries(id), field) or ''):gmatch('(%d+) (%d+) ([^\n]+)\n') do
  if at == position then failed[name] = tonumber(n) end
  if at ~= position or name ~= worker then lines[#lines + 1] = at .. ' ' .. n .. ' ' .. name .. '\n' end
end
tried = math.max(tried, failed[worker] or 0)
lines[#lines + 1] = string.format('%s %d %s\n', position, tried, worker)
redis.call('HSET', tries(id), field, table.concat(lines))
-- One that goes on under another name is no other worker, though its old registration may last.
local mine, isAlone = redis.pcall('HMGET', K .. ':w:' .. worker, 'host', 'pid'), true
for _, other in ipairs(redis.call('ZRANGE', K .. ':workers', string.format('(%d', now()), '+inf', 'BYSCORE')) do
  if other ~= worker then
    local m = redis.pcall('HMGET', K .. ':w:' .. other, 'trouble', 'held', 'paused', 'host', 'pid')
    local isSame = not m.err and m[4] and m[4] == mine[1] and m[5] == mine[2]
    if not isSame and (m.err or (m[1] or '') == '' and (m[2] or '') == '' and m[3] ~= '1') then
      if not failed[other] then return 'LEAVE' end
      isAlone = false
    end
  end
end
return isAlone and tried < 2 and 'AGAIN' or 'END'
