#!lua flags=allow-oom
-- RECOUNT: counts a piece of the outcomes into the fields `r1` … `r31`, which REPORT adds to from then on. Invalid
-- outcome bytes, and those beyond the list, become open.
-- ARGV: batch, token, first index, number, URLs of the list.
-- Result: `OK`, bytes seen, bytes made open, last index with an outcome plus 1, or 0; `AT` and the index to go on from;
-- `LOST` if another repair has the batch.
-- Cost: O(number), 65,536.
-- Again: `AT`; from index 0 it begins anew.

-- luacheck: read globals id token mine (of step.lua)
if not mine() then return {'LOST'} end
local from, n, limit = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
if from == 0 then
  for code = 1, 31 do redis.call('HDEL', batch(id), 'r' .. code) end
else
  local at = redis.call('HGET', batch(id), 'recount')
  if at ~= ARGV[3] then return {'AT', at or '0'} end
end
local bytes = redis.call('GETRANGE', outcomes(id), from, from + n - 1)
local count, wrong, last = {}, 0, 0
for i = 1, #bytes do
  local code = bytes:byte(i)
  if code > 31 or (code ~= 0 and from + i > limit) then
    redis.call('SETRANGE', outcomes(id), from + i - 1, '\0')
    wrong = wrong + 1
  elseif code ~= 0 then
    count[code] = (count[code] or 0) + 1
    last = from + i
  end
end
for code, c in pairs(count) do redis.call('HINCRBY', batch(id), 'r' .. code, c) end
redis.call('HSET', batch(id), 'recount', from + n)
return {'OK', tostring(#bytes), tostring(wrong), tostring(last)}
