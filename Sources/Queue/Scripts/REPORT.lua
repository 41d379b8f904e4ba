#!lua flags=allow-oom
-- REPORT: outcomes of jobs of one batch. For exactly the URLs it is first to settle it writes the outcome, adds to the
-- counts of the batch and of the worker (in this batch, and in its record), keeps the detail and the record and changes
-- the failed set; then it completes the batch if that was the last one.
-- ARGV: worker, batch, its nonce, most details kept, the id of the cache its images are in ("": unknown), that cache's
-- host and directory; then for each job: its name, "1" if it has ended, one byte per URL (0 = not reported), big endian
-- the sum of all lengths in 8 bytes and the length of each URL that is not 0 in 4 ("" if all are 0), the failures (5
-- bytes per run of equal neighbours: first and last position, HTTP status in two, tries), number of details,
-- (position, detail) …, number of URLs to list, (position, URL, ms until it lapses or 0, tail of its details) …,
-- number of URLs to take off the list, (position, URL) ….
-- Result: `OK`, then for each job 1 if this call was first to settle all its outcomes, else one byte per URL: the
-- outcome if it was first, else 0; the state if the batch is over, `gone` if a later batch has the id; `BROKEN` and why
-- if a key of the batch has another type.
-- Cost: O(URLs + those it lists × log failed URLs).
-- Again: changes nothing, also from a worker that was reaped in between: the first outcome of an index wins.
--
-- If a key has another type nothing is written, and as in CLAIM the batch leaves the ready lists.
--
-- Several jobs per call: a call from Lua costs Redis more than its work, and most calls are for the batch.
--
-- A job that has ended for its worker but has open URLs goes back: Redis restarted without its last second, in which
-- they were reported.

local worker, id, nonce, most, at = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), 7
local m = redis.call('HMGET', batch(id), 'state', 'nonce', 'created', 'pace')
if (m[2] or '') ~= nonce then m = {'gone'} end
-- Type checks before the first write: a script that fails in the middle has written outcomes without their counts.
redis.call('HLEN', own(worker))
if m[1] == 'running' then
  for _, call in ipairs({{'STRLEN', outcomes(id)}, {'HLEN', counts(id)}, {'HLEN', skipped(id)}, {'HLEN', records(id)},
      {'HLEN', tries(id)}, {'LLEN', jobs(id)}, {'STRLEN', places(id)}, {'HLEN', caches(id)}}) do
    local reply = redis.pcall(unpack(call))
    if type(reply) == 'table' and reply.err then
      takeOut(id)
      redis.call('HSET', batch(id), 'broken', words(reply))
      return {'BROKEN', words(reply)}
    end
  end
end
local isRunning = m[1] == 'running'
local count, new, skippedNew, bytes = {}, 0, 0, 0
local ended, heard, back, notes, out = {}, {}, {}, {}, {'OK'}
local rows = {}
-- `n` bytes of a code. In two steps: string.rep costs a call for each repetition.
local function all(code, n)
  rows[code] = rows[code] or string.rep(string.rep(string.char(code), 16), 16)
  return n == 256 and rows[code] or rows[code]:sub(1, n)
end
-- The number of the cache: 0 is the first with an image of the batch; the 256th and all later ones share 255. The
-- second result: whether the batch has other caches, so that a 0 has to be written too.
local cache, cacheCount
local function cacheNumber()
  if cache then return cache, cacheCount > 1 end
  local known = redis.call('HGET', caches(id), ARGV[5])
  cacheCount = redis.call('HLEN', caches(id))
  cache = known and math.min(number(known:match('^%d+'), 0), 255)
  if not cache then
    cache, cacheCount = math.min(cacheCount, 255), cacheCount + 1
    redis.call('HSET', caches(id), ARGV[5], string.format('%d %s', cache, ARGV[6]))
  end
  return cache, cacheCount > 1
end
-- Records the cache of the images that this call was first to settle.
local function place(start, n, first, images)
  local mine, others = cacheNumber()
  if mine == 0 and not others then return end
  local row = all(mine, n)
  if images < n then
    local was, codes, marks = {redis.call('GETRANGE', places(id), start, start + n - 1):byte(1, -1)},
      {first:byte(1, -1)}, {}
    for i = 1, n do marks[i] = (codes[i] >= 1 and codes[i] <= 3) and mine or was[i] or 0 end
    row = string.char(unpack(marks))
  end
  redis.call('SETRANGE', places(id), start, row)
end
-- Compares strings, and in one pass the bytes of a job that had settled some before: most reports are the first for all
-- their URLs, and many have one code.
local function settle(name, start, n, isFinal, said, lengths)
  local base = tonumber(start)
  local old = redis.call('GETRANGE', outcomes(id), start, base + n - 1)
  local untouched = old == all(0, #old)
  local first, codes, c = said, {}, 0
  if untouched then
    old = said
    local one = said:byte(1)
    if said == all(one, n) then
      codes[one] = n
    else
      for _, code in ipairs({said:byte(1, -1)}) do codes[code] = (codes[code] or 0) + 1 end
    end
    if lengths ~= '' then bytes = bytes + struct.unpack('>I8', lengths) end
  else
    local was, mine, offset = {old:byte(1, -1)}, {said:byte(1, -1)}, 9
    for i = 1, n do
      local code, before = mine[i], was[i] or 0
      if code ~= 0 then
        if before == 0 then
          before = code
          codes[code] = (codes[code] or 0) + 1
          if lengths ~= '' then bytes = bytes + struct.unpack('>I4', lengths, offset) end
        else
          mine[i] = 0
        end
        offset = offset + 4
      end
      was[i] = before
    end
    first, old = string.char(unpack(mine)), string.char(unpack(was))
  end
  codes[0] = nil
  for code, k in pairs(codes) do
    c = c + k
    count[code] = (count[code] or 0) + k
    if code > 3 then skippedNew = skippedNew + k end
  end
  new = new + c
  local images = (codes[1] or 0) + (codes[2] or 0) + (codes[3] or 0)
  if images > 0 and ARGV[5] ~= '' then place(base, n, first, images) end
  if c > 0 then
    redis.call('SETRANGE', outcomes(id), start, old)
  end
  if c > 0 or isFinal and redis.call('HEXISTS', own(worker), name .. '@' .. nonce) == 1 then
    heard[#heard + 1] = name
    heard[#heard + 1] = name .. '!'
    if isFinal then heard[#heard + 1] = name .. '~' end
  end
  local isOpen = #old < n or old:find('\0', 1, true)
  if not isOpen then
    heard[#heard + 1] = name .. '?'
    heard[#heard + 1] = name .. '^'
  end
  if isFinal and isOpen then
    local claim = name .. '@' .. nonce
    local payload = redis.call('HGET', own(worker), claim)
    if payload then back[#back + 1] = {claim, payload} end
  end
  out[#out + 1] = untouched and 1 or first
  return first
end
while ARGV[at] do
  local name, isFinal, details = ARGV[at], ARGV[at + 1] == '1', tonumber(ARGV[at + 5])
  local start, n = name:match(':(%d+):(%d+)$')
  if isFinal then ended[#ended + 1] = name .. '@' .. nonce end
  local note = {base = tonumber(start), details = at + 6, listed = at + 7 + 2 * details, failures = ARGV[at + 4]}
  local listed = tonumber(ARGV[note.listed - 1])
  note.unlisted = note.listed + 4 * listed + 1
  local unlisted = tonumber(ARGV[note.unlisted - 1])
  if isRunning then
    note.first = settle(name, start, tonumber(n), isFinal, ARGV[at + 2], ARGV[at + 3])
    note.isWhole = note.first == ARGV[at + 2]
    if details + listed + unlisted > 0 or note.failures ~= '' then notes[#notes + 1] = note end
  end
  at = note.unlisted + 2 * unlisted
end
if #ended > 0 then redis.call('HDEL', own(worker), unpack(ended)) end
if #heard > 0 then redis.call('HDEL', tries(id), unpack(heard)) end
if not isRunning then return {m[1] or 'gone'} end
if new > 0 then
  for code, c in pairs(count) do
    redis.call('HINCRBY', batch(id), 'o' .. code, c)
    redis.call('HINCRBY', counts(id), worker .. ':' .. code, c)
  end
  local finished = redis.call('HINCRBY', batch(id), 'finished', new)
  if skippedNew > 0 then redis.call('HINCRBY', batch(id), 'skipped', skippedNew) end
  if bytes > 0 then
    redis.call('HINCRBY', batch(id), 'bytes', bytes)
    redis.call('HINCRBY', counts(id), worker .. ':bytes', bytes)
  end
  -- Informational: a worker record that is gone, or of a wrong type, counts nothing.
  local mine = K .. ':w:' .. worker
  if redis.call('EXISTS', mine) == 1 then
    redis.pcall('HINCRBY', mine, 'finished', new)
    if skippedNew > 0 then redis.pcall('HINCRBY', mine, 'skipped', skippedNew) end
    if bytes > 0 then redis.pcall('HINCRBY', mine, 'bytes', bytes) end
  end
  local t = string.format('%d', now())
  redis.call('HSET', batch(id), 'last', t)
  -- Where it was some seconds ago: two marks, so that one reading tells its rate. What a longer break lies behind is
  -- forgotten.
  local past = number((m[4] or ''):match('(%d+) %d+ %d+ %d+$'), 0)
  if t - past >= 8000 or t - past < 0 then
    local sums = redis.call('HMGET', batch(id), 'skipped', 'bytes')
    local mark = string.format('%s %d %d %d', t, finished, number(sums[1], 0), number(sums[2], 0))
    local before = past == 0 and number(m[3], 0) or past
    local isNear = t - before >= 0 and t - before < 16000
    local older = past > 0 and m[4]:match('(%d+ %d+ %d+ %d+)$') or string.format('%d 0 0 0', before)
    redis.call('HSET', batch(id), 'pace', (isNear and older or mark) .. ' ' .. mark)
  end
  local function list(urls, ttls, tails)
    local known, metas, latest = {}, {}, {}
    local lapses = {key = K .. ':failed:lapses', urls = {}, places = {}}
    local stays = {key = K .. ':failed:stays', urls = {}, places = {}}
    -- URLs that are all new to the set have no details.
    local added = redis.call('SADD', K .. ':failed', unpack(urls))
    if added < #urls then known = redis.call('HMGET', K .. ':failed:meta', unpack(urls)) end
    for i, url in ipairs(urls) do
      local since, times = (latest[url] or known[i] or ''):match('^(%d+) %d+ (%d+) ')
      local ttl = tonumber(ttls[i])
      local next = ttl > 0 and t + ttl or 0
      latest[url] = string.format('%s %s %d %d ', since or t, t, number(times, 0) + 1, next) .. tails[i]
      metas[2 * i - 1] = url
      metas[2 * i] = latest[url]
      local here = ttl > 0 and lapses or stays
      here.urls[#here.urls + 1] = url
      here.places[#here.places + 1] = string.format('%d', t + ttl)
      here.places[#here.places + 1] = url
    end
    redis.call('HSET', K .. ':failed:meta', unpack(metas))
    if #stays.urls > 0 then redis.call('ZREM', lapses.key, unpack(stays.urls)) end
    if #lapses.urls > 0 then redis.call('ZREM', stays.key, unpack(lapses.urls)) end
    for _, here in ipairs({lapses, stays}) do
      if #here.urls > 0 then redis.call('ZADD', here.key, unpack(here.places)) end
    end
    -- Removes more than this call adds, so old entries get fewer while failures come.
    sweepListed(2 * #urls)
  end
  -- The records of all jobs go into their chunks of 256 indices together.
  local seconds = math.floor((t - (tonumber(m[3]) or t)) / 1000)
  seconds = struct.pack('>I4', math.max(0, math.min(seconds, 4294967294)))
  local chunks, names = {}, {}
  local function record(first, last, tail)
    while first <= last do
      local name = string.format('%d', math.floor(first / 256))
      local stop = math.min(last, first - first % 256 + 255)
      if not chunks[name] then
        chunks[name] = {}
        names[#names + 1] = name
      end
      table.insert(chunks[name], string.char(first % 256, stop % 256) .. tail .. seconds)
      first = stop + 1
    end
  end
  for _, note in ipairs(notes) do
    local function isFirst(position) return note.first:byte(position + 1) ~= 0 end
    for i = 1, #note.failures, 5 do
      local from, to = note.failures:byte(i, i + 1)
      local tail = note.failures:sub(i + 2, i + 4)
      if note.isWhole then
        record(note.base + from, note.base + to, tail)
      else
        for position = from, to do
          if isFirst(position) then record(note.base + position, note.base + position, tail) end
        end
      end
    end
    -- All details in one command.
    local entries, room = {}, 0
    if note.listed > note.details + 1 then room = most - redis.call('HLEN', skipped(id)) end
    for i = note.details, note.listed - 3, 2 do
      if room <= 0 then break end
      if isFirst(ARGV[i]) then
        entries[#entries + 1] = string.format('%d', note.base + ARGV[i])
        entries[#entries + 1] = ARGV[i + 1]
        room = room - 1
      end
    end
    if #entries > 0 then redis.call('HSET', skipped(id), unpack(entries)) end
    local urls, ttls, tails = {}, {}, {}
    for i = note.listed, note.unlisted - 5, 4 do
      if isFirst(ARGV[i]) then
        urls[#urls + 1] = ARGV[i + 1]
        ttls[#ttls + 1] = ARGV[i + 2]
        tails[#tails + 1] = ARGV[i + 3]
      end
    end
    -- The blacklist belongs to no batch: outcomes count even if it is broken, and the next command that uses it reports
    -- the error.
    if #urls > 0 then pcall(list, urls, ttls, tails) end
    local taken = {}
    for i = note.unlisted, note.unlisted + 2 * tonumber(ARGV[note.unlisted - 1]) - 2, 2 do
      if isFirst(ARGV[i]) then taken[#taken + 1] = ARGV[i + 1] end
    end
    if #taken > 0 then pcall(unlist, taken) end
  end
  if #names > 0 then
    local fields = {}
    for i, old in ipairs(redis.call('HMGET', records(id), unpack(names))) do
      fields[2 * i - 1] = names[i]
      fields[2 * i] = (old or '') .. table.concat(chunks[names[i]])
    end
    redis.call('HSET', records(id), unpack(fields))
  end
end
-- Also if all was settled before: the call that did it may have failed here at a key of a wrong type.
closeIfComplete(id)
for _, job in ipairs(back) do giveBack(job[1], job[2]) end
return out
