#!lua flags=allow-oom
-- CLAIM: the next jobs for a worker. Ends batches whose deadline has passed first.
-- ARGV: worker, sequence number of this claim, most jobs, lease in ms, URLs after which no further job is claimed,
-- a priority ("": none): nothing is claimed unless it is the turn of a higher one; a batch ("": all): only its jobs are
-- claimed, whosever turn it is.
-- Result: `LOST`; `PAUSED`; `LEFT` if there are only jobs that it leaves to others; or `OK`, the
-- number of registered workers, then (payload, nonce of its batch, its priority, outcome bytes, deliveries, marks,
-- how many other workers gave it back because of their own network) of each job, then, if there are any, a list of
-- notices (kind, batch, text): `DEAD` and the first bytes of an invalid job that is on the dead-letter list now, or
-- `BROKEN` and why a batch was taken out.
-- Cost: O(jobs), plus one step per ready batch that has used its share.
-- Again: with the same number the same jobs, as far as the worker still has them; notices are returned once.
--
-- Priorities share by URLs, 11 : 4 : 1 among those that have jobs: each has a clock that its claimed URLs advance, the
-- slower the more it may have, and the one whose clock is behind is next. One that had no jobs begins at the time of
-- the others. Batches of one priority take turns by jobs, and share by URLs: one that has had its 256 waits until all
-- others have had theirs, so that a list in jobs of 2 is not delayed by one in jobs of 256.
--
-- A job of which only URLs are open that this worker's rules refuse, while others have still to judge them (REFUSED),
-- is left to those: it moves to the end of its list.
--
-- A key of a wrong type must not block the other batches: its batch leaves the ready lists with a field `broken`, and
-- its jobs are pushed back.
--
-- A script, not BLMOVE into a private list: BLMOVE loses jobs if a worker stops inside it and is reaped, or if its
-- reply is lost while the worker lives, and it cannot drain a Redis at maxmemory.

local worker, wanted, urls, above, only = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[5]), ARGV[6], ARGV[7]
if not redis.call('ZSCORE', K .. ':workers', worker) then return {'LOST'} end
redis.call('ZADD', K .. ':workers', 'XX', now() + tonumber(ARGV[4]), worker)
endDue()
local out = {'OK', redis.call('ZCARD', K .. ':workers')}
-- The state of jobs of one batch, for the worker. Reads everything first, so that an error leaves nothing behind.
local function about(id, names)
  local fields, told = {}, {}
  for _, name in ipairs(names) do
    fields[#fields + 1] = name
    fields[#fields + 1] = name .. '!'
    fields[#fields + 1] = name .. '~'
    fields[#fields + 1] = name .. '^'
  end
  local t = redis.call('HMGET', tries(id), unpack(fields))
  for i, name in ipairs(names) do
    local start, n = name:match(':(%d+):(%d+)$')
    local doubts = 0
    for other in (t[4 * i - 1] or ''):gmatch('%S+') do doubts = doubts + (other == worker and 0 or 1) end
    told[i] = {redis.call('GETRANGE', outcomes(id), start, start + n - 1), t[4 * i - 3] or '0', t[4 * i - 2] or '0',
      tostring(doubts)}
    told[i].refused = t[4 * i]
    told[i].count = tonumber(n)
  end
  return told
end
-- Whether others have still to judge what is open of a job, and this worker's rules refuse all of it.
local rules, others
local function isLeft(told)
  if not told.refused then return false end
  if not rules then
    rules = (redis.call('HGET', K .. ':w:' .. worker, 'rules') or ''):match('^%S+') or ''
    others = otherRules(worker, rules)
  end
  local refused, waits = {}, false
  for at, of in told.refused:gmatch('(%d+) (%S+)\n') do refused[at .. ' ' .. of] = true end
  for at = 0, told.count - 1 do
    if (told[1]:byte(at + 1) or 0) == 0 then
      if not refused[at .. ' ' .. rules] then return false end
      for of in pairs(others) do waits = waits or not refused[at .. ' ' .. of] end
    end
  end
  return waits
end
local function give(payload, nonce, priority, told)
  out[#out + 1] = payload
  out[#out + 1] = nonce
  out[#out + 1] = priority or 'normal'
  for i = 1, 4 do out[#out + 1] = told[i] end
end
local last = redis.call('HMGET', own(worker), '#seq', '#jobs')
if last[1] == ARGV[2] then
  for name in last[2]:gmatch('%S+') do
    local payload = redis.call('HGET', own(worker), name)
    local id, _, _, nonce = parts(name)
    local priority = redis.pcall('HGET', batch(id), 'priority')
    if type(priority) == 'table' then priority = nil end
    if payload then give(payload, nonce, priority, about(id, {jobOf(name)})[1]) end
  end
  return out
end
if redis.call('HGET', K .. ':w:' .. worker, 'paused') == '1' then return {'PAUSED'} end
if redis.call('EXISTS', K .. ':paused') == 1 then return out end
-- How many jobs of a batch were left to others, the batches that have no other ones or too many of them, and the
-- priorities that have only such batches.
local seen, passed, closed = {}, {}, {}
-- The batch of a ready list whose turn it is, and its credit if it has to share. Nil: all are passed.
local function pick(list)
  local count = redis.call('LLEN', list)
  if count < 2 then
    local id = redis.call('LINDEX', list, 0)
    return not passed[id] and id or nil
  end
  while true do
    local isOpen = false
    for _ = 1, count do
      local id = redis.call('LMOVE', list, list, 'LEFT', 'RIGHT')
      if not passed[id] then
        isOpen = true
        local known = redis.pcall('HGET', batch(id), 'credit')
        -- Not a hash: `take` reports it.
        if type(known) == 'table' then return id end
        local credit = tonumber(known or '') or 256
        if credit > 0 then return id, credit end
      end
    end
    if not isOpen then return nil end
    for _, id in ipairs(redis.call('LRANGE', list, 0, -1)) do
      local owed = tonumber(redis.call('HGET', batch(id), 'credit') or '') or 0
      -- No batch owes that much, and nan is not a number: foreign values must not make this loop endless.
      if owed ~= owed or owed < -65536 then owed = 0 end
      redis.call('HSET', batch(id), 'credit', math.floor(owed) + 256)
    end
  end
end
local names, told, claimed, left = {}, {}, 0, 0
-- Name, batch, first line and number of URLs of a job; nil if it is none.
local function read(payload)
  local name = payload:sub(1, 200):match('^prefetch%-job [12] ([^%s@]+) ')
  if name then return name, parts(name) end
end
-- How many of a batch's next jobs to take: until there are enough URLs.
local function enough(id, order, most)
  if most == 1 then return 1 end
  local next = redis.call('LRANGE', jobs(id), order == 'lifo' and 0 or -most, order == 'lifo' and most - 1 or -1)
  local size = 0
  for i = 1, #next do
    local _, _, _, n = read(next[order == 'lifo' and i or #next + 1 - i])
    size = size + (n or 0)
    if claimed + size >= urls then return i end
  end
  return most
end
-- Claims jobs of a batch, if its next elements are valid; returns the number of their URLs.
local function take(id, credit, held, most)
  local m = redis.call('HMGET', batch(id), 'state', 'order', 'pushed', 'nonce', 'priority')
  local nonce = m[4] or ''
  held.order = m[2]
  held.payloads = redis.call(m[2] == 'lifo' and 'LPOP' or 'RPOP', jobs(id), enough(id, m[2], most)) or {}
  if redis.call('LLEN', jobs(id)) == 0 then
    -- A batch that is in a ready list but not marked as ready would be picked forever.
    if redis.call('HGET', batch(id), 'ready') == '1' then unready(id) else takeOut(id) end
  end
  if #held.payloads == 0 or m[1] ~= 'running' then return 0 end
  local good, fields, size = {}, {}, 0
  for _, payload in ipairs(held.payloads) do
    local name, of, base, n = read(payload)
    if of == id and n >= 1 and n <= 256 and base + n <= tonumber(m[3] or '0') then
      good[#good + 1] = name
      fields[#fields + 1] = name .. '@' .. nonce
      fields[#fields + 1] = payload
      size = size + n
    else
      bury(payload)
      for _, word in ipairs({'DEAD', id, payload:sub(1, 64)}) do told[#told + 1] = word end
    end
  end
  if #good == 0 then return 0 end
  local each = about(id, good)
  local kept, back = {}, {}
  for i = 1, #good do
    if isLeft(each[i]) then
      back[#back + 1] = fields[2 * i]
      size = size - each[i].count
    else
      kept[#kept + 1] = i
    end
  end
  local claims = {}
  for _, i in ipairs(kept) do
    claims[#claims + 1] = fields[2 * i - 1]
    claims[#claims + 1] = fields[2 * i]
  end
  if #kept > 0 then redis.call('HSET', own(worker), unpack(claims)) end
  if #back > 0 then
    redis.call(m[2] == 'lifo' and 'RPUSH' or 'LPUSH', jobs(id), unpack(back))
    ready(id)
    left = left + #back
    seen[id] = (seen[id] or 0) + #back
    passed[id] = seen[id] >= math.min(16, redis.call('LLEN', jobs(id)))
  end
  if #kept == 0 then return 0 end
  if credit then redis.call('HSET', batch(id), 'credit', credit - size) end
  for _, i in ipairs(kept) do
    give(fields[2 * i], nonce, m[5], each[i])
    names[#names + 1] = fields[2 * i - 1]
  end
  return size
end
-- Takes jobs of a batch, which leaves the ready lists if its keys have wrong types; returns the number of their URLs,
-- nil in that case.
local function tryTo(id, credit, most)
  local held = {}
  local ok, size = pcall(take, id, credit, held, most)
  if ok then
    claimed = claimed + size
    return size
  end
  local err = size
  -- In their old order, whichever end they came from.
  for i = #(held.payloads or {}), 1, -1 do
    redis.pcall(held.order == 'lifo' and 'LPUSH' or 'RPUSH', jobs(id), held.payloads[i])
  end
  takeOut(id)
  redis.pcall('HSET', batch(id), 'broken', words(err))
  for _, word in ipairs({'BROKEN', id, words(err)}) do told[#told + 1] = word end
end
local function mayTakeMore() return #names < wanted and claimed < urls and #told < 48 and left < 64 end
while only ~= '' and mayTakeMore() and not passed[only] do
  local mark = redis.pcall('HGET', batch(only), 'ready')
  if type(mark) ~= 'table' and mark ~= '1' or not tryTo(only, nil, wanted - #names) then break end
end
-- A single ready batch gives all wanted jobs in one turn.
local lists = 0
for _, p in ipairs({'high', 'normal', 'low'}) do lists = lists + redis.call('LLEN', K .. ':ready:' .. p) end
while only == '' and mayTakeMore() do
  local priority, clock = turn(closed)
  if not priority or above ~= '' and ranks[priority] >= ranks[above] then break end
  local id, credit = pick(K .. ':ready:' .. priority)
  if id then
    local size = tryTo(id, credit, lists == 1 and wanted - #names or 1)
    if size then redis.call('HSET', K .. ':turns', 'now', clock, priority, clock + size * steps[priority]) end
  else
    closed[priority] = true
  end
end
if #names > 0 then redis.call('HSET', own(worker), '#seq', ARGV[2], '#jobs', table.concat(names, ' ')) end
if #told > 0 then out[#out + 1] = told end
if #out == 2 and left > 0 then return {'LEFT'} end
return out
