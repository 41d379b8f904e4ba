#!lua flags=allow-oom
-- BEAT: a worker's heartbeat. Renews its lease, also an expired one whose jobs were not reaped yet. Ends batches whose
-- deadline has passed, and takes up to 200 failed URLs off their list that have expired or exceed its limit.
-- ARGV: worker, lease in ms, "1" if its own last call took over a third of the lease, number of batches, batches
-- (`batch@nonce`), the sequence number of the last claim whose reply it has read ("": it does not report its claims),
-- number of its claims, claims, field, value … of its record.
-- Result: `LOST`; or `OK`, settings (name, value …), and (state, paused, changes) of each batch in order, with state
-- `gone` if a later batch has the id; `changes` is how often CHANGE changed it.
-- Cost: O(log workers + batches + claims + up to 200 × log failed URLs).
-- Again: the same.
--
-- The settings: `paused` and `wanted` (transfers in flight) for this worker, `queue_paused` and `concurrency` for all,
-- `workers` (how many are registered), `hosts` (version of the host notes), `unlisted` (failed URLs removed because of
-- the list's limit), `reap` (there may be something for REAP), `above` (the lowest priority of its batches, if it is
-- the turn of a higher one). An absent name is not set; workers ignore unknown names.
--
-- If a worker's own call took that long, Redis stalled and other leases are late for the same reason: reaping is on
-- hold for two leases. No other hold starts in the two leases after it.
--
-- A claim that the worker does not name would never be reported: it is noted in the field `#unheld`, and goes back
-- without counting a delivery if the next heartbeat does not name it either.

tick()
local lease, n = tonumber(ARGV[2]), tonumber(ARGV[4])
-- Nothing changes either if its lease ends at this very ms already.
if redis.call('ZADD', K .. ':workers', 'XX', 'CH', now() + lease, ARGV[1]) == 0
    and not redis.call('ZSCORE', K .. ':workers', ARGV[1]) then
  return {'LOST'}
end
-- No new hold for two leases: a worker with slow heartbeats on a busy machine would postpone every reclaim forever.
if ARGV[3] == '1' and number(redis.call('GET', K .. ':hold'), 0) + 2 * lease <= now() then
  redis.call('SET', K .. ':hold', now() + 2 * lease, 'PX', 4 * lease)
end
endDue()
local said, claims = ARGV[5 + n], tonumber(ARGV[6 + n])
local about = 7 + n + claims
if ARGV[about] then redis.call('HSET', K .. ':w:' .. ARGV[1], 'beat', now(), unpack(ARGV, about)) end
-- Only for workers that report their claims.
local function compare()
  local held = redis.call('HKEYS', own(ARGV[1]))
  local isEmpty = true
  for _, name in ipairs(held) do isEmpty = isEmpty and name:sub(1, 1) == '#' and name ~= '#unheld' end
  if isEmpty then return end
  local last = redis.call('HMGET', own(ARGV[1]), '#seq', '#jobs', '#unheld')
  local has, before, missing = {}, {}, {}
  for i = 7 + n, about - 1 do has[ARGV[i]] = true end
  -- The reply to the last claim may be in transit. A later claim that returned no jobs is not recorded here.
  if last[1] and number(last[1], 0) > number(said, 0) then for name in last[2]:gmatch('%S+') do has[name] = true end end
  for name in (last[3] or ''):gmatch('%S+') do before[name] = true end
  for _, name in ipairs(held) do
    if name:sub(1, 1) ~= '#' and not has[name] then
      if before[name] then
        local payload = redis.call('HGET', own(ARGV[1]), name)
        redis.call('HDEL', own(ARGV[1]), name)
        pcall(giveBack, name, payload)
      else
        missing[#missing + 1] = name
      end
    end
  end
  if #missing > 0 then redis.call('HSET', own(ARGV[1]), '#unheld', table.concat(missing, ' '))
  elseif last[3] then redis.call('HDEL', own(ARGV[1]), '#unheld') end
end
if said ~= '' then pcall(compare) end
-- The blacklist belongs to no worker: the heartbeat counts even if that list is broken.
local isSwept, unlisted = pcall(sweepListed, 200)
local settings = {}
local function tell(name, value)
  if value then
    settings[#settings + 1] = name
    settings[#settings + 1] = value
  end
end
local own = redis.call('HMGET', K .. ':w:' .. ARGV[1], 'paused', 'wanted')
local all = redis.call('MGET', K .. ':paused', K .. ':concurrency')
tell('paused', own[1])
tell('wanted', own[2])
tell('queue_paused', all[1])
tell('concurrency', all[2])
local workers = redis.call('ZCARD', K .. ':workers')
tell('workers', workers)
tell('hosts', redis.call('HGET', K .. ':hosts', '#v'))
if isSwept then tell('unlisted', unlisted) end
-- An expired lease, or one that ends so late that no worker has set it: REAP decides.
local soon, latest = string.format('(%d', now()), string.format('(%d', now() + 2 * lease)
local alive = redis.call('ZCOUNT', K .. ':workers', soon, latest)
if alive < workers then tell('reap', '1') end
local out, lowest = {'OK', settings}, 'high'
for i = 5, 4 + n do
  local id, nonce = ARGV[i]:match('^([^@]*)@(.*)$')
  local m = redis.pcall('HMGET', batch(id), 'state', 'paused', 'nonce', 'priority', 'changes')
  -- A broken hash hides the state of its own batch only.
  if m.err then out[#out + 1] = {'running', '0', '0'}
  else
    out[#out + 1] = {(m[3] or '') == nonce and m[1] or 'gone', m[2] or '0', m[5] or '0'}
    local priority = ranks[m[4]] and m[4] or 'normal'
    if m[1] == 'running' and ranks[priority] > ranks[lowest] then lowest = priority end
  end
end
if lowest ~= 'high' and own[1] ~= '1' and not all[1] then
  local isFine, next = pcall(turn)
  if isFine and next and ranks[next] < ranks[lowest] then tell('above', lowest) end
end
return out
