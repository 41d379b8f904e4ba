-- Key names and shared steps; a script is sent with those it uses. KEYS[1] is the queue's root, `prefetch:{queue}`.

local K = KEYS[1]
local function batch(id) return K .. ':b:' .. id end
local function jobs(id) return K .. ':jobs:' .. id end
local function outcomes(id) return batch(id) .. ':o' end
local function skipped(id) return batch(id) .. ':skipped' end
local function records(id) return batch(id) .. ':records' end
local function counts(id) return batch(id) .. ':w' end
local function hosts(id) return batch(id) .. ':hosts' end
local function tries(id) return batch(id) .. ':tries' end
local function caches(id) return batch(id) .. ':caches' end
local function places(id) return batch(id) .. ':places' end
local function shards(id) return batch(id) .. ':shards' end
local function own(worker) return K .. ':own:' .. worker end
-- A whole number from 0 to 2^48 from a field that any client may have written; `default` for nan, inf and text.
local function number(text, default)
  local n = tonumber(text)
  if not n or n ~= n or n < 0 then return default end
  return math.floor(math.min(n, 281474976710656))
end
-- The queue's clock in ms since 1970: Redis' TIME, corrected if that went back by more than a second. Leases, deadlines
-- and pauses end on this clock; a clock that went back would keep them from ending.
local seen
local function readClock()
  if seen then return seen end
  local t, known = redis.call('TIME'), redis.pcall('HMGET', K .. ':clock', 'last', 'ahead')
  local last, ahead = number(known[1], 0), number(known[2], 0)
  local at = t[1] * 1000 + math.floor(t[2] / 1000)
  local isBack = at + ahead < last - 1000
  if isBack then ahead = last - at end
  seen = {at = at + ahead, last = last, ahead = ahead, isBack = isBack, us = t[2] % 1000}
  return seen
end
local function now() return readClock().at end
-- Frequently called scripts store the time for all others, once per second.
local function tick()
  local t = readClock()
  if t.at - t.last >= 1000 or t.isBack then
    redis.pcall('HSET', K .. ':clock', 'last', t.at, 'ahead', t.ahead)
    t.last, t.isBack = t.at, false
  end
end
-- Splits a job name into batch, index of its first URL and number of URLs; a claim name, job@nonce, also gives the
-- nonce.
local function parts(name)
  local job, nonce = name:match('^([^@]+)@(%S*)$')
  local id, base, n = (job or name):match('^([%w._-]+):(%d+):(%d+)$')
  return id, tonumber(base), tonumber(n), nonce
end
local function jobOf(claim) return (claim:match('^[^@]+')) end
-- Whether the batch still has this nonce, so is not a later one with the same id.
local function isOf(id, nonce) return (redis.call('HGET', batch(id), 'nonce') or '') == nonce end
-- Removes a batch from its ready list; the bell is deleted with the last one. Also for a batch whose hash was deleted.
local function unready(id)
  local m = redis.call('HMGET', batch(id), 'ready', 'state')
  if m[1] ~= '1' and m[2] then return end
  -- A batch is in one list at most. Its own priority is tried first, from the end to which CLAIM has just moved it, so
  -- that the last job of one of ten thousand small batches does not scan all of them.
  for _, p in ipairs({redis.call('HGET', batch(id), 'priority') or 'normal', 'high', 'normal', 'low'}) do
    if redis.call('LREM', K .. ':ready:' .. p, -1, id) == 1 then break end
  end
  -- Last: if LREM fails at a list of a wrong type, the batch is still listed and must stay marked as ready.
  if m[1] then redis.call('HDEL', batch(id), 'ready') end
  if redis.call('EXISTS', K .. ':ready:high', K .. ':ready:normal', K .. ':ready:low') == 0 then
    redis.call('DEL', K .. ':bell')
  end
end
-- The bell rings while any batch is ready and the queue is not paused.
local function ring()
  if redis.call('EXISTS', K .. ':bell', K .. ':paused') > 0 then return end
  if redis.call('EXISTS', K .. ':ready:high', K .. ':ready:normal', K .. ':ready:low') > 0 then
    redis.call('RPUSH', K .. ':bell', '1')
  end
end
-- Puts a batch into the ready list of its priority, once, if it has jobs and may run.
local function ready(id)
  local m = redis.call('HMGET', batch(id), 'ready', 'state', 'paused', 'priority')
  if m[1] == '1' or m[2] ~= 'running' or m[3] == '1' then return end
  redis.call('RPUSH', K .. ':ready:' .. (m[4] or 'normal'), id)
  redis.call('HSET', batch(id), 'ready', '1')
  ring()
end
-- How far a URL advances the clock of its priority: 44 / 11, 44 / 4, 44 / 1.
local steps = {high = 4, normal = 11, low = 44}
local ranks = {high = 1, normal = 2, low = 3}
-- The priority that is next, and its clock; nil if none has jobs. Its clock is behind those of the others that have
-- jobs. One that had none begins at the time of the last claim. `closed`: priorities that are left out; nil: none.
local function turn(closed)
  local clocks = redis.call('HMGET', K .. ':turns', 'now', 'high', 'normal', 'low')
  local at, first, behind = number(clocks[1], 0), nil, nil
  for i, p in ipairs({'high', 'normal', 'low'}) do
    if not (closed and closed[p]) and redis.call('EXISTS', K .. ':ready:' .. p) == 1 then
      local clock = math.max(at, number(clocks[i + 1], 0))
      if not first or clock < behind then first, behind = p, clock end
    end
  end
  return first, behind
end
-- Removes a batch from every ready list, whatever its hash says.
local function takeOut(id)
  for _, p in ipairs({'high', 'normal', 'low'}) do redis.pcall('LREM', K .. ':ready:' .. p, 0, id) end
  redis.pcall('HDEL', batch(id), 'ready')
  if redis.call('EXISTS', K .. ':ready:high', K .. ':ready:normal', K .. ':ready:low') == 0 then
    redis.call('DEL', K .. ':bell')
  end
end
-- Deletes the details of failed URLs.
local function strip(urls)
  for _, name in ipairs({':failed:lapses', ':failed:stays'}) do redis.call('ZREM', K .. name, unpack(urls)) end
  redis.call('HDEL', K .. ':failed:meta', unpack(urls))
end
-- Takes URLs off the list of failed ones. Returns how many were on it.
local function unlist(urls)
  local n = redis.call('SREM', K .. ':failed', unpack(urls))
  strip(urls)
  return n
end
-- Takes up to `most` URLs off the list of failed ones: those that have lapsed; then, while batches have listed more
-- than its limit, the oldest. Among those that lapse, the oldest is the one that lapses first. Returns how many were
-- taken off because of the limit so far; nil: none.
local function sweepListed(most)
  local lapses, stays = K .. ':failed:lapses', K .. ':failed:stays'
  local gone = redis.call('ZRANGE', lapses, '-inf', string.format('(%d', now()), 'BYSCORE', 'LIMIT', 0, most)
  if #gone > 0 then unlist(gone) end
  -- Equals PrefetchKeys.failedLimitDefault; a test compares them.
  local limits = redis.call('HMGET', K .. ':failed:limit', 'max', 'removed')
  local limit = number(limits[1], 500000)
  local over = redis.call('ZCARD', lapses) + redis.call('ZCARD', stays) - limit
  over = math.min(over, most - #gone)
  if limit == 0 or over <= 0 then return limits[2] end
  local first, lasting = redis.call('ZRANGE', lapses, 0, over - 1),
    redis.call('ZRANGE', stays, 0, over - 1, 'WITHSCORES')
  local metas, old, i, j = #first > 0 and redis.call('HMGET', K .. ':failed:meta', unpack(first)) or {}, {}, 1, 1
  while #old < over do
    local last = number((metas[i] or ''):match('^%d+ (%d+) '), 0)
    if first[i] and not (lasting[j] and tonumber(lasting[j + 1]) < last) then
      old[#old + 1] = first[i]
      i = i + 1
    else
      old[#old + 1] = lasting[j]
      j = j + 2
    end
  end
  unlist(old)
  return redis.call('HINCRBY', K .. ':failed:limit', 'removed', #old)
end
-- Moves the first 64 KiB of an invalid job to the dead-letter list.
local function bury(payload)
  redis.call('LPUSH', K .. ':dead', payload:sub(1, 65536))
  redis.call('LTRIM', K .. ':dead', 0, 999)
end
-- Redis memory of the waiting jobs in bytes. Redis adds it up itself, so no push or claim can make it wrong; 30 us for
-- 24 MiB.
local function bytesOf(id) return redis.call('MEMORY', 'USAGE', jobs(id), 'SAMPLES', '0') or 0 end
local mostBytes = 25165824
-- The text of a caught error.
local function words(err) return type(err) == 'table' and err.err or tostring(err) end
-- Returns a claimed job to the end of its list that is popped next, unless its batch is over or replaced by a later one
-- of the same id. Returns whether the job is on the list now.
local function giveBack(claim, payload)
  local id, _, _, nonce = parts(claim)
  if not id then return false end
  local m = redis.call('HMGET', batch(id), 'state', 'order', 'nonce')
  if m[1] ~= 'running' or (m[3] or '') ~= nonce then return false end
  redis.call(m[2] == 'lifo' and 'LPUSH' or 'RPUSH', jobs(id), payload)
  ready(id)
  return true
end
-- Counts what lost workers had. A counter that cannot be written must not stop the caller.
local function lose(field, n)
  if n > 0 then redis.pcall('HINCRBY', K .. ':losses', field, n) end
end
-- Removes a worker; its record is kept for a day. The record is informational: a key of a wrong type does not keep the
-- worker from going.
local function depart(worker, state)
  local t = now()
  redis.pcall('ZREMRANGEBYSCORE', K .. ':gone', '-inf', t - 86400000)
  redis.pcall('ZADD', K .. ':gone', t, worker)
  redis.pcall('HSET', K .. ':w:' .. worker, 'state', state, 'ended', t)
  redis.pcall('EXPIRE', K .. ':w:' .. worker, 86400)
end
-- The rules of registered workers that work, not paused, in trouble or held, as far as they differ from these.
local function otherRules(worker, rules)
  local others = {}
  for _, name in ipairs(redis.call('ZRANGE', K .. ':workers', string.format('(%d', now()), '+inf', 'BYSCORE')) do
    if name ~= worker then
      local m = redis.pcall('HMGET', K .. ':w:' .. name, 'rules', 'trouble', 'held', 'paused')
      local known = not m.err and (m[1] or ''):match('^%S+')
      if known and known ~= rules and (m[2] or '') == '' and (m[3] or '') == '' and m[4] ~= '1' then
        others[known] = true
      end
    end
  end
  return others
end
-- Number of URLs of a job without an outcome.
local function openOf(job)
  local id, base, n = parts(job)
  local said = redis.call('GETRANGE', outcomes(id), base, base + n - 1)
  return n - #said + select(2, said:gsub('%z', ''))
end
-- The keys that stay when a batch has ended.
local function results(id)
  return {
    batch(id), outcomes(id), skipped(id), records(id), counts(id), hosts(id), batch(id) .. ':refused', caches(id),
    places(id), shards(id),
  }
end
-- Keeps the results for `seconds` (0 = forever), and those of the batches this one retries: they share its lines.
local function keepFor(id, seconds)
  for _ = 1, 1000 do
    for _, k in ipairs(results(id)) do
      if seconds > 0 then redis.call('EXPIRE', k, seconds) else redis.call('PERSIST', k) end
    end
    local parent = redis.call('HGET', batch(id), 'retry_of')
    -- A hash of a wrong type ends the chain, not the script, which has already written other keys.
    if not parent or redis.pcall('HGET', batch(parent), 'retried_by') ~= id then return end
    id = parent
  end
end
-- Deletes every key of a batch whatever its type and state, also where its hash is gone. A batch it retried loses the
-- link. Returns how many keys there were.
local function erase(id)
  local m = redis.pcall('HMGET', batch(id), 'retry_of', 'slot')
  if m.err then m = {} end
  if m[1] and redis.pcall('HGET', batch(m[1]), 'retried_by') == id then
    redis.call('HDEL', batch(m[1]), 'retried_by')
    keepFor(m[1], number(redis.call('HGET', batch(m[1]), 'keep'), 0))
  end
  if m[2] and redis.pcall('HGET', K .. ':slots', m[2]) == id then redis.call('HDEL', K .. ':slots', m[2]) end
  takeOut(id)
  redis.pcall('ZREM', K .. ':batches', id)
  redis.pcall('ZREM', K .. ':deadlines', id)
  redis.pcall('SREM', K .. ':running', id)
  return redis.call('UNLINK', jobs(id), tries(id), unpack(results(id)))
end
-- Ends a batch: keys needed only while it runs are deleted, results are kept for `keep` seconds. `by`: the cause of a
-- cancellation.
local function close(id, state, by)
  unready(id)
  redis.call('HSET', batch(id), 'state', state, 'ended', now())
  if by then redis.call('HSET', batch(id), 'ended_by', by) end
  redis.call('ZREM', K .. ':deadlines', id)
  redis.call('DEL', jobs(id), tries(id))
  redis.call('SREM', K .. ':running', id)
  local slot = redis.call('HGET', batch(id), 'slot') or ''
  if slot ~= '' and redis.call('HGET', K .. ':slots', slot) == id then redis.call('HDEL', K .. ':slots', slot) end
  -- At most a century: EXPIRE overflows in milliseconds.
  keepFor(id, math.min(number(redis.call('HGET', batch(id), 'keep'), 0), 3153600000))
end
-- Ends a batch as `done` if every URL has ended, as `cancelled` if its `finish_at` is reached (a share of the total:
-- once that is known), or if more of its URLs fail than `max_failures` allows: a number, or from 1,000 ended URLs on
-- a share of these. `filtered` is no failure.
local function closeIfComplete(id)
  local m = redis.call('HMGET', batch(id), 'state', 'sealed', 'finished', 'total', 'finish_at', 'max_failures',
    'skipped', 'o21')
  if m[1] ~= 'running' then return end
  local finished, total = number(m[3], -1), number(m[4], -2)
  if m[2] == '1' and finished == total then return close(id, 'done') end
  if m[6] then
    local percent = tonumber((m[6]:match('^(.+)%%$')) or '')
    local most = percent and finished * percent / 100 or number(m[6], math.huge)
    if (not percent or finished >= 1000) and number(m[7], 0) - number(m[8], 0) > most then
      return close(id, 'cancelled', 'max-failures')
    end
  end
  if not m[5] then return end
  local share = m[5]:match('^(.+)%%$')
  if share and m[2] ~= '1' then return end
  -- The epsilon: 99.9 % of 1,000 are 999 in spite of rounding.
  local part = share and tonumber(share) or 100
  local wanted = share and math.ceil(total * (part == part and part or 100) / 100 - 1e-6) or number(m[5], total)
  if wanted < 0 then return end
  if finished >= math.max(1, wanted) then close(id, 'cancelled', 'finish-at') end
end
-- Ends the batches whose deadline has passed. There is no leader: every script that runs often calls it.
local function endDue()
  local due = redis.call('ZRANGE', K .. ':deadlines', '-inf', now(), 'BYSCORE', 'LIMIT', 0, 16)
  for _, id in ipairs(due) do
    -- A key of a wrong type keeps only its own batch from ending; that one is tried again every two seconds.
    local ok = pcall(function()
      if redis.call('HGET', batch(id), 'state') == 'running' then close(id, 'cancelled', 'deadline') end
    end)
    if ok then redis.call('ZREM', K .. ':deadlines', id)
    else redis.call('ZADD', K .. ':deadlines', 'XX', now() + 2000, id) end
  end
  return #due
end
