#!lua flags=allow-oom
-- HEAL: makes the sets of batches, of running ones and of deadlines, the ready lists, the bell and the slots agree
-- with the batches. A running batch with a key of a wrong type, or with open URLs that are in no job, cannot end by
-- itself: it gets the field `broken`, and loses it when that is so no more.
-- ARGV: "1" for a dry run, "1" if every claim is at a registered worker, batches that may not be in the set of
-- batches …
-- Result: a sentence for each thing that was wrong; then how many batches have open URLs in no job of a registered
-- worker.
-- Cost: O(batches + claims of all workers).
-- Again: nothing.

local isDry, isComplete, out, listed, lost = ARGV[1] == '1', ARGV[2] == '1', {}, {}, 0
local function wrong(text, ...)
  out[#out + 1] = text
  if not isDry then for _, command in ipairs({...}) do redis.call(unpack(command)) end end
end
-- The batches of all claims, as `id@nonce`.
local claimed = {}
for _, worker in ipairs(redis.call('ZRANGE', K .. ':workers', 0, -1)) do
  local names = redis.pcall('HKEYS', own(worker))
  for _, name in ipairs(names.err and {} or names) do
    local id, _, _, nonce = parts(name)
    if id then claimed[id .. '@' .. (nonce or '')] = true end
  end
end
-- Why a running batch cannot end; false if it can.
local function fault(id, m, waiting)
  for _, read in ipairs({{'STRLEN', outcomes(id)}, {'HLEN', counts(id)}, {'HLEN', skipped(id)}, {'HLEN', records(id)},
      {'HLEN', tries(id)}, {'STRLEN', places(id)}, {'HLEN', caches(id)}}) do
    local reply = redis.pcall(unpack(read))
    if type(reply) == 'table' then return words(reply) end
  end
  local pushed, finished = number(m.pushed, 0), number(m.finished, 0)
  local open = (m.sealed == '1' and math.max(pushed, number(m.total, 0)) or pushed) - finished
  if open < 1 or waiting > 0 or claimed[id .. '@' .. (m.nonce or '')] then return false end
  lost = lost + 1
  return isComplete and open .. ' open URLs are in no job'
end
-- A batch's state, the ready list it belongs to if it may run, and its fault.
local known = {}
local function facts(id)
  if known[id] then return unpack(known[id], 1, 3) end
  local ok, state, list, why = pcall(function()
    local m, names = {}, {'state', 'paused', 'priority', 'pushed', 'finished', 'sealed', 'total', 'nonce'}
    for i, value in ipairs(redis.call('HMGET', batch(id), unpack(names))) do m[names[i]] = value end
    local waiting = redis.call('LLEN', jobs(id))
    if not m.state and redis.call('EXISTS', jobs(id), outcomes(id), counts(id)) > 0 then error('its record is gone') end
    local why = m.state == 'running' and fault(id, m, waiting)
    return m.state, not why and m.state == 'running' and m.paused ~= '1' and waiting > 0 and (m.priority or 'normal'),
      why
  end)
  known[id] = ok and {state or 'gone', list, why} or {'broken', false, words(state)}
  return unpack(known[id], 1, 3)
end
for _, p in ipairs({'high', 'normal', 'low'}) do
  for _, id in ipairs(redis.call('LRANGE', K .. ':ready:' .. p, 0, -1)) do
    local state, list = facts(id)
    if listed[id] then
      wrong(id .. ' is in the ready lists twice', {'LREM', K .. ':ready:' .. p, 0, id})
      if listed[id] == p and not isDry then redis.call('RPUSH', K .. ':ready:' .. p, id) end
    elseif list ~= p then
      wrong(id .. ' is in the ready list ' .. p .. (list and ', not ' .. list or ' and has nothing to give out'),
        {'LREM', K .. ':ready:' .. p, 0, id})
      if not isDry and state ~= 'gone' and state ~= 'broken' then redis.call('HDEL', batch(id), 'ready') end
    else
      listed[id] = p
    end
  end
end
local ids, isKnown = redis.call('ZRANGE', K .. ':batches', 0, -1), {}
for _, id in ipairs(ids) do isKnown[id] = true end
local others = redis.call('SMEMBERS', K .. ':running')
for i = 3, #ARGV do others[#others + 1] = ARGV[i] end
for _, id in ipairs(others) do
  local created = redis.pcall('HGET', batch(id), 'created')
  if type(created) == 'string' and not isKnown[id] then
    wrong(id .. ' is not in the set of batches', {'ZADD', K .. ':batches', number(created, now()), id})
    ids[#ids + 1] = id
    isKnown[id] = true
  end
end
for _, id in ipairs(ids) do
  local state, list, why = facts(id)
  if state == 'running' then
    if redis.call('SISMEMBER', K .. ':running', id) == 0 then
      wrong(id .. ' runs and is not in the set of running batches', {'SADD', K .. ':running', id})
    end
    local deadline = number(redis.call('HGET', batch(id), 'deadline'))
    if deadline and not redis.call('ZSCORE', K .. ':deadlines', id) then
      wrong(id .. ' has a deadline and is not in the set of deadlines', {'ZADD', K .. ':deadlines', deadline, id})
    end
    if list and not listed[id] then
      wrong(id .. ' has jobs and is in no ready list', {'HDEL', batch(id), 'ready'})
      if not isDry then ready(id) end
    elseif (redis.call('HGET', batch(id), 'ready') == '1') ~= (listed[id] ~= nil) then
      wrong(id .. ' says that it is ' .. (listed[id] and 'not ready and is' or 'ready and is not'),
        listed[id] and {'HSET', batch(id), 'ready', '1'} or {'HDEL', batch(id), 'ready'})
    end
    if not isDry then
      if why then redis.call('HSET', batch(id), 'broken', why) else redis.call('HDEL', batch(id), 'broken') end
      closeIfComplete(id)
    end
  end
end
for _, id in ipairs(redis.call('SMEMBERS', K .. ':running')) do
  local state = facts(id)
  if state ~= 'running' and state ~= 'broken' then
    wrong(id .. ' is ' .. state .. ' and in the set of running batches', {'SREM', K .. ':running', id})
  end
end
local slots = redis.call('HGETALL', K .. ':slots')
for i = 1, #slots, 2 do
  local state = facts(slots[i + 1])
  if state ~= 'running' and state ~= 'broken' then
    wrong('the slot ' .. slots[i] .. ' is held by ' .. slots[i + 1] .. ', which is ' .. state,
      {'HDEL', K .. ':slots', slots[i]})
  end
end
local any = redis.call('EXISTS', K .. ':ready:high', K .. ':ready:normal', K .. ':ready:low') > 0
local isPaused = redis.call('EXISTS', K .. ':paused') > 0
local bells = redis.call('LLEN', K .. ':bell')
if bells ~= (any and not isPaused and 1 or 0) then
  wrong('the bell has ' .. bells .. ' elements while ' .. (any and 'a batch is' or 'no batch is') .. ' ready'
    .. (isPaused and ' and the queue is paused' or ''), {'DEL', K .. ':bell'})
  if not isDry then ring() end
end
return {out, lost}
