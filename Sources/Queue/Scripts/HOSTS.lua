#!lua flags=allow-oom
-- HOSTS: adds a worker's requests to hosts since its last call to `h404` … and the fields of FetchTally and LimitTimes
-- of the batches, and to their hosts (256 per batch at most). A batch that is over is added to while it exists; new
-- keys expire with it.
-- ARGV: worker, token, then batch and lines (HostTally) of each batch.
-- Result: 1; 0 if this was the last token already, or the worker has no record.
-- Cost: five commands per batch, one per status and figure; once a second, and only from workers that have URLs.
-- Again: changes nothing with the same token.

local w = K .. ':w:' .. ARGV[1]
if redis.call('EXISTS', w) == 0 or redis.call('HGET', w, 'tallied') == ARGV[2] then return 0 end
redis.call('HSET', w, 'tallied', ARGV[2])
local function add(id, text)
  if redis.call('EXISTS', batch(id)) == 0 then return end
  local names, more, fields = {}, {}, {}
  for line in text:gmatch('[^\n]+') do
    local status, n = line:match('^(%d%d%d) (%d+)$')
    local figure, by = line:match('^([tsfdaum]%d%d?) (%d+)$')
    local host, finished, skipped, bytes = line:match('^(%S+) (%d+) (%d+) (%d+)$')
    if status then
      redis.call('HINCRBY', batch(id), 'h' .. status, n)
    elseif figure then
      redis.call('HINCRBY', batch(id), figure, by)
    elseif host then
      names[#names + 1] = host
      more[#names] = {finished, skipped, bytes}
    end
  end
  if #names == 0 then return end
  local known = redis.call('HMGET', hosts(id), unpack(names))
  local room = 256 - redis.call('HLEN', hosts(id))
  for i, name in ipairs(names) do
    local was = {(known[i] or '0 0 0'):match('^(%d+) (%d+) (%d+)$')}
    if #was == 3 and (known[i] or room > 0) then
      if not known[i] then room = room - 1 end
      for j = 1, 3 do was[j] = string.format('%.0f', was[j] + more[i][j]) end
      fields[#fields + 1] = name
      fields[#fields + 1] = table.concat(was, ' ')
    end
  end
  if #fields == 0 then return end
  redis.call('HSET', hosts(id), unpack(fields))
  local left = redis.call('PTTL', batch(id))
  if left > 0 then redis.call('PEXPIRE', hosts(id), left) end
end
-- A key of a wrong type loses the figures of its own batch only.
for i = 3, #ARGV - 1, 2 do pcall(add, ARGV[i], ARGV[i + 1]) end
return 1
