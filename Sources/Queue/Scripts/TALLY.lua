#!lua flags=allow-oom
-- TALLY: sets the counts of a batch to those of RECOUNT. A deficit in the workers' sums goes to a worker called
-- `repair`, a surplus is subtracted. A batch that is done but has open URLs runs again, unless it has a retry.
-- ARGV: batch, token.
-- Result: (name, old, new) of each count that was wrong.
-- Cost: O(workers).
-- Again: changes nothing.

-- luacheck: read globals id token mine (of step.lua)
if not mine() or redis.call('HEXISTS', batch(id), 'recount') == 0 then return {} end
local out, finished, skipped, sums, workers = {}, 0, 0, {}, redis.call('HGETALL', counts(id))
local function set(name, value)
  local old = redis.call('HGET', batch(id), name) or '0'
  if tonumber(old) == value then return end
  redis.call('HSET', batch(id), name, value)
  for _, word in ipairs({name, old, tostring(value)}) do out[#out + 1] = word end
end
for i = 1, #workers, 2 do
  local what = workers[i]:match(':([^:]+)$') or ''
  sums[what] = (sums[what] or 0) + (tonumber(workers[i + 1]) or 0)
end
local function level(what, wanted)
  local missing = wanted - (sums[what] or 0)
  if missing > 0 then redis.call('HINCRBY', counts(id), 'repair:' .. what, missing) end
  for i = 1, #workers, 2 do
    local has = tonumber(workers[i + 1]) or 0
    if missing < 0 and workers[i]:match(':([^:]+)$') == what then
      local less = math.min(has, -missing)
      missing = missing + less
      if less == has then redis.call('HDEL', counts(id), workers[i])
      else redis.call('HSET', counts(id), workers[i], has - less) end
    end
  end
  if wanted ~= (sums[what] or 0) then
    for _, word in ipairs({'workers:' .. what, tostring(sums[what] or 0), tostring(wanted)}) do out[#out + 1] = word end
  end
end
for code = 1, 31 do
  local n = tonumber(redis.call('HGET', batch(id), 'r' .. code) or '0')
  finished = finished + n
  if code > 3 then skipped = skipped + n end
  set('o' .. code, n)
  level(tostring(code), n)
end
set('finished', finished)
set('skipped', skipped)
local bytes = tonumber(redis.call('HGET', batch(id), 'bytes') or '0')
if bytes < (sums.bytes or 0) then set('bytes', sums.bytes) else level('bytes', bytes) end
for code = 1, 31 do redis.call('HDEL', batch(id), 'r' .. code) end
redis.call('HDEL', batch(id), 'recount')
local m = redis.call('HMGET', batch(id), 'state', 'total', 'retried_by', 'sealed')
if m[1] == 'done' and finished < tonumber(m[2] or '0') then
  if not m[3] or redis.call('HGET', batch(m[3]), 'retry_of') ~= id then
    redis.call('HSET', batch(id), 'state', 'running', 'sealed', '1')
    redis.call('HDEL', batch(id), 'ended')
    redis.call('SADD', K .. ':running', id)
    for _, k in ipairs(results(id)) do redis.call('PERSIST', k) end
    for _, word in ipairs({'state', 'done', 'running'}) do out[#out + 1] = word end
  end
elseif m[1] == 'done' and m[4] ~= '1' then set('sealed', 1) end
return out
