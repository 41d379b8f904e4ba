#!lua flags=allow-oom
-- SHARE: how many transfers to each host a worker may have, of a limit for all workers. Unregistered workers do not
-- count.
-- ARGV: worker, then (host, limit, transfers the worker has, how many it could have) of each host.
-- Result: the worker's share of each host; less than it has if others want theirs: it then starts none until it has
-- fewer.
-- Cost: O(hosts × workers that have or want some of them).
-- Again: the same.

local out, worker = {}, ARGV[1]
for i = 2, #ARGV, 4 do
  local key, limit = K .. ':conns:' .. ARGV[i], tonumber(ARGV[i + 1])
  local held, wanted = tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local all = redis.pcall('HGETALL', key)
  if all.err then redis.call('DEL', key) all = {} end
  local others, claims, parts, isShort = 0, {wanted}, {}, false
  for j = 1, #all, 2 do
    if all[j] ~= worker then
      local has, wants = all[j + 1]:match('^(%d+) (%d+)$')
      if has and redis.call('ZSCORE', K .. ':workers', all[j]) then
        others = others + has
        claims[#claims + 1] = tonumber(wants)
        parts[#parts + 1] = tonumber(has)
        if tonumber(wants) > tonumber(has) then isShort = true end
      else
        redis.call('HDEL', key, all[j])
      end
    end
  end
  local most = limit - others
  if isShort then
    -- Equal shares; a worker that wants less leaves the rest to the others, and the remainder goes to the first to ask.
    table.sort(claims)
    local rest, level, open = limit, 0, #claims
    for _, wants in ipairs(claims) do
      level = math.floor(rest / open)
      if wants > level then break end
      rest, open = rest - wants, open - 1
    end
    local over = rest - level * open
    for _, has in ipairs(parts) do over = over - math.max(0, has - level) end
    most = math.min(most, math.max(1, level) + (level > 0 and math.max(0, over) or 0))
  end
  local granted = math.max(0, math.min(wanted, most))
  if held + wanted > 0 then
    redis.call('HSET', key, worker, string.format('%d %d', math.max(held, granted), wanted))
    redis.call('EXPIRE', key, 60)
  else
    redis.call('HDEL', key, worker)
  end
  out[#out + 1] = granted
end
return out
