#!lua flags=allow-oom
-- BEAT: the worker is alive; its lease begins anew, also where it had run out but nobody took its jobs. Ends batches
-- whose deadline has passed, and takes up to 200 failed URLs off their list that have lapsed or are too many.
-- ARGV: worker, lease in ms, "1" where its own last call took over a third of the lease, number of batches, batches
-- (`batch@nonce`), the sequence number of its last claim whose reply it has read ("": it does not say what it has),
-- number of claims it has, claims, field, value … about it.
-- Result: `LOST`; or `OK`, orders (name, value …), and (state, paused) of each batch as it is then, its state `gone`
-- where a later one has its name.
-- Cost: O(log workers + batches + claims + up to 200 × log failed URLs).
-- Again: the same.
--
-- The names are orders to the worker: `paused` and `wanted` (transfers in flight) to itself, `queue_paused` and
-- `concurrency` to all, `hosts` (changes of what is known of hosts), `unlisted` (failed URLs that went since there are
-- more than their list may have), `reap` (there may be something for REAP); one that is not there was not given. A
-- worker passes over names that it does not know.
--
-- Where a worker's own call took so long, Redis stalled, so other leases are late for the same reason: nobody is reaped
-- for two leases, and then for two leases there is no other hold.
--
-- A claim that it does not name would never be reported: it is noted in the field `#unheld`, and goes back without
-- blame where the next beat does not name it either.

tick()
if not redis.call('ZSCORE', K .. ':workers', ARGV[1]) then return {'LOST'} end
local lease, n = tonumber(ARGV[2]), tonumber(ARGV[4])
-- No hold for two leases after one: a worker whose beats are always slow, on a busy machine, would put off every
-- reclaim for ever.
if ARGV[3] == '1' and number(redis.call('GET', K .. ':hold'), 0) + 2 * lease <= now() then
  redis.call('SET', K .. ':hold', now() + 2 * lease, 'PX', 4 * lease)
end
redis.call('ZADD', K .. ':workers', 'XX', now() + lease, ARGV[1])
endDue()
local said, claims = ARGV[5 + n], tonumber(ARGV[6 + n])
local isIdle = said ~= '' and claims == 0
local about = 7 + n + claims
if ARGV[about] then redis.call('HSET', K .. ':w:' .. ARGV[1], 'beat', now(), unpack(ARGV, about)) end
-- Only a worker that says what it has can be held to it.
local function compare()
  local held = redis.call('HKEYS', own(ARGV[1]))
  local isEmpty = true
  for _, name in ipairs(held) do isEmpty = isEmpty and name:sub(1, 1) == '#' and name ~= '#unheld' end
  if isEmpty then return end
  local last = redis.call('HMGET', own(ARGV[1]), '#seq', '#jobs', '#unheld')
  local has, before, missing = {}, {}, {}
  for i = 7 + n, about - 1 do has[ARGV[i]] = true end
  -- The reply to its last claim may be on its way. A later one that gave nothing is not noted here.
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
-- The list of failed URLs is no worker's: where it is broken the beat counts all the same. Who has nothing to do looks
-- at it less often, since a fleet that waits should cost nothing.
if not isIdle or now() % 8 == 0 then pcall(sweepListed, 200) end
local orders = {}
local function order(name, value)
  if value then
    orders[#orders + 1] = name
    orders[#orders + 1] = value
  end
end
local own = redis.call('HMGET', K .. ':w:' .. ARGV[1], 'paused', 'wanted')
local all = redis.call('MGET', K .. ':paused', K .. ':concurrency')
order('paused', own[1])
order('wanted', own[2])
order('queue_paused', all[1])
order('concurrency', all[2])
order('hosts', redis.call('HGET', K .. ':hosts', '#v'))
local unlisted = redis.pcall('HGET', K .. ':failed:limit', 'removed')
if type(unlisted) == 'string' then order('unlisted', unlisted) end
-- A lease that has run out, one that ends so late that somebody has written it, a batch that a repair holds: REAP knows
-- better.
if redis.call('ZCOUNT', K .. ':workers', '-inf', now())
    + redis.call('ZCOUNT', K .. ':workers', now() + 2 * lease, '+inf')
    + redis.call('EXISTS', K .. ':held') > 0 then
  order('reap', '1')
end
local out = {'OK', orders}
for i = 5, 4 + n do
  local id, nonce = ARGV[i]:match('^([^@]*)@(.*)$')
  local m = redis.pcall('HMGET', batch(id), 'state', 'paused', 'nonce')
  -- Of a batch whose hash is none nothing is known, and the others are to be told.
  if m.err then out[#out + 1] = {'running', '0'}
  else out[#out + 1] = {(m[3] or '') == nonce and m[1] or 'gone', m[2] or '0'} end
end
return out
