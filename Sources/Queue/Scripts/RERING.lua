#!lua flags=allow-oom
-- RERING: makes the sets of batches, of running ones and of deadlines, the ready lists, the bell and the slots agree
-- with the batches. A batch held by a repair stays out.
-- ARGV: "1" for a dry run, batches that have a hash and were not in the set of batches …
-- Result: a sentence for each thing that was wrong.
-- Cost: O(batches).
-- Again: nothing.

local isDry, out, listed = ARGV[1] == '1', {}, {}
local function wrong(text, ...)
  out[#out + 1] = text
  if not isDry then for _, command in ipairs({...}) do redis.call(unpack(command)) end end
end
-- A batch's state, and the ready list it belongs to if it may run.
local function facts(id)
  local ok, state, list = pcall(function()
    local m = redis.call('HMGET', batch(id), 'state', 'paused', 'priority')
    local mayRun = m[1] == 'running' and m[2] ~= '1' and redis.call('HEXISTS', K .. ':held', id) == 0
      and redis.call('LLEN', jobs(id)) > 0
    return m[1], mayRun and (m[3] or 'normal')
  end)
  if ok then return state or 'gone', list end
  return 'broken', nil
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
local ids = redis.call('ZRANGE', K .. ':batches', 0, -1)
for i = 2, #ARGV do
  local id = ARGV[i]
  local m = redis.pcall('HMGET', batch(id), 'nonce', 'created')
  if m[1] and not redis.call('ZSCORE', K .. ':batches', id) then
    wrong(id .. ' is not in the set of batches', {'ZADD', K .. ':batches', number(m[2], now()), id})
    ids[#ids + 1] = id
  end
end
for _, id in ipairs(ids) do
  local state, list = facts(id)
  local isIn = redis.call('SISMEMBER', K .. ':running', id) == 1
  if state == 'running' and not isIn then
    wrong(id .. ' runs and is not in the set of running batches', {'SADD', K .. ':running', id})
  end
  local deadline = state == 'running' and number(redis.call('HGET', batch(id), 'deadline'))
  if deadline and not redis.call('ZSCORE', K .. ':deadlines', id) then
    wrong(id .. ' has a deadline and is not in the set of deadlines', {'ZADD', K .. ':deadlines', deadline, id})
  end
  if list and not listed[id] then
    wrong(id .. ' has jobs and is in no ready list', {'HDEL', batch(id), 'ready'})
    if not isDry then ready(id) end
  elseif state == 'running' then
    local says = redis.call('HGET', batch(id), 'ready') == '1'
    if says ~= (listed[id] ~= nil) then
      wrong(id .. ' says that it is ' .. (says and 'ready and is not' or 'not ready and is'),
        listed[id] and {'HSET', batch(id), 'ready', '1'} or {'HDEL', batch(id), 'ready'})
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
return out
