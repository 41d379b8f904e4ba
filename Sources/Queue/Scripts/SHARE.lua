#!lua flags=allow-oom
-- SHARE: how many transfers with a limit a worker may have to each host, of those of all workers. Those with one limit
-- are at most as many as it says, all together as many as the highest says. Unregistered workers do not count.
-- ARGV: worker, then (host, limit, transfers with it that the worker has, how many it could have) of each host.
-- Result: the worker's share of each host; less than it has if others want theirs: it then starts none until it has
-- fewer.
-- Cost: O(hosts × workers that have or want some of them).
-- Again: the same.

-- What `others`, each {has, wants}, leave of a limit: an equal part, if some of them want more than they have.
local function part(limit, wanted, others)
  local held, claims, isShort = 0, {wanted}, false
  for _, other in ipairs(others) do
    held = held + other[1]
    claims[#claims + 1] = other[2]
    if other[2] > other[1] then isShort = true end
  end
  local most = limit - held
  if not isShort then return most end
  -- Who wants less leaves the rest to the others, and the remainder goes to the first to ask.
  table.sort(claims)
  local rest, level, open = limit, 0, #claims
  for _, wants in ipairs(claims) do
    level = math.floor(rest / open)
    if wants > level then break end
    rest, open = rest - wants, open - 1
  end
  local over = rest - level * open
  for _, other in ipairs(others) do over = over - math.max(0, other[1] - level) end
  return math.min(most, math.max(1, level) + (level > 0 and math.max(0, over) or 0))
end

local out, worker = {}, ARGV[1]
for i = 2, #ARGV, 4 do
  local key, own, limit = K .. ':conns:' .. ARGV[i], worker .. ' ' .. ARGV[i + 1], tonumber(ARGV[i + 1])
  local held, wanted = tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local all = redis.pcall('HGETALL', key)
  if all.err then redis.call('DEL', key) all = {} end
  local most, same, others = limit, {}, {}
  for j = 1, #all, 2 do
    if all[j] ~= own then
      local name, of = all[j]:match('^(.+) (%d+)$')
      local has, wants = all[j + 1]:match('^(%d+) (%d+)$')
      if name and has and redis.call('ZSCORE', K .. ':workers', name) then
        local other = {tonumber(has), tonumber(wants)}
        others[#others + 1] = other
        if tonumber(of) == limit then same[#same + 1] = other end
        most = math.max(most, tonumber(of))
      else
        redis.call('HDEL', key, all[j])
      end
    end
  end
  local granted = math.min(wanted, part(limit, wanted, same))
  if #same < #others then granted = math.min(granted, part(most, wanted, others)) end
  granted = math.max(0, granted)
  if held + wanted > 0 then
    redis.call('HSET', key, own, string.format('%d %d', math.max(held, granted), wanted))
    redis.call('EXPIRE', key, 60)
  else
    redis.call('HDEL', key, own)
  end
  out[#out + 1] = granted
end
return out
