#!lua flags=allow-oom
-- RECORDS: makes chunks of failure records agree with the outcomes: each skipped URL keeps its first record or gets an
-- empty one, everything else is removed.
-- ARGV: batch, token, fields of `records` …
-- Result: records and damaged chunks removed, records made.
-- Cost: O(256) per field, 64 fields per call.
-- Again: 0, 0.

-- luacheck: read globals id token mine (of step.lua)
local dropped, made = 0, 0
if not mine() then return {0, 0} end
for i = 3, #ARGV do
  local chunk = tonumber(ARGV[i])
  local old = redis.call('HGET', records(id), ARGV[i]) or ''
  local codes = chunk and redis.call('GETRANGE', outcomes(id), chunk * 256, chunk * 256 + 255) or ''
  local kept, rest, was, new = {}, #old % 9, dropped + made, {}
  for at = 1, #old - 8, 9 do
    for p = old:byte(at), old:byte(at + 1) do
      if (codes:byte(p + 1) or 0) > 3 and not kept[p] then
        kept[p] = old:sub(at + 2, at + 8)
      else
        dropped = dropped + 1
      end
    end
    if old:byte(at) > old:byte(at + 1) then dropped = dropped + 1 end
  end
  if rest > 0 then dropped = dropped + 1 end
  if codes:find('[\4-\255]') then
    for p = 0, #codes - 1 do
      if codes:byte(p + 1) > 3 and not kept[p] then
        kept[p] = '\0\0\0\255\255\255\255'
        made = made + 1
      end
    end
  end
  if dropped + made > was then
    local p = 0
    while p < 256 do
      local last = p
      if kept[p] then
        while kept[last + 1] == kept[p] do last = last + 1 end
        new[#new + 1] = string.char(p, last) .. kept[p]
      end
      p = last + 1
    end
    if #new > 0 then
      redis.call('HSET', records(id), ARGV[i], table.concat(new))
    else
      redis.call('HDEL', records(id), ARGV[i])
    end
  end
end
return {dropped, made}
