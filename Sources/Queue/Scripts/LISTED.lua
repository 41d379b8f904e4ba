#!lua flags=allow-oom
-- LISTED: which of these URLs are on the list of failed ones. A lapsed entry is on parole: the first caller is told to
-- request its URL once, and to all others it is listed until that has a result. The lease of the request is the
-- caller's claim: without a result it ends with the claim, and the next caller is told the same.
-- ARGV: worker, claim of its job, `reason:ms` … of the times to live by which entries lapse for this caller, if that is
-- earlier, URLs that SMISMEMBER has found.
-- Result: (position among these from 0, metadata of the entry, "1" if the caller is to request it, else "") of each
-- that is on it.
-- Cost: O(URLs), and log failed URLs for each on parole.
-- Again: the same.

local found = redis.call('SMISMEMBER', K .. ':failed', unpack(ARGV, 4))
local t, out, places, urls, ttls = now(), {}, {}, {}, {}
for i, member in ipairs(found) do
  if member == 1 then
    places[#places + 1] = tostring(i - 1)
    urls[#urls + 1] = ARGV[i + 3]
  end
end
if #urls == 0 then return out end
for reason, ms in ARGV[3]:gmatch('(%S+):(%d+)') do ttls[reason] = number(ms, 0) end
-- When an entry lapses; 0: never.
local function lapse(meta)
  local last, factor, next, outcome, status = meta:match('^%d+ (%d+) %d+ (%d+) (%d+) (%S*) (%d+) ')
  if not last then return 0 end
  local due, ttl = number(next, 0), ttls[outcome == 'httpError' and status or outcome]
  if not ttl then return due end
  local mine = number(last, 0) + ttl * number(factor, 1)
  return due > 0 and math.min(due, mine) or mine
end
local function isClaimed(worker, claim) return redis.pcall('HEXISTS', own(worker), claim) == 1 end
local mayAsk, mine = isClaimed(ARGV[1], ARGV[2]), ARGV[1] .. ' ' .. ARGV[2]
local holders, given, stay = redis.call('HMGET', K .. ':failed:parole', unpack(urls)), {}, {}
for i, meta in ipairs(redis.call('HMGET', K .. ':failed:meta', unpack(urls))) do
  local due, isMine = lapse(meta or ''), false
  if due > 0 and due <= t and mayAsk then
    local worker, claim = (holders[i] or ''):match('^(%S+) (%S+)$')
    isMine = not worker or holders[i] == mine or not isClaimed(worker, claim)
  end
  if isMine then
    given[#given + 1] = urls[i]
    given[#given + 1] = mine
    stay[#stay + 1] = t + 86400000
    stay[#stay + 1] = urls[i]
  end
  out[#out + 1] = places[i]
  out[#out + 1] = meta or ''
  out[#out + 1] = isMine and '1' or ''
end
if #given > 0 then
  redis.call('HSET', K .. ':failed:parole', unpack(given))
  -- No sweep removes it before its result.
  redis.call('ZADD', K .. ':failed:lapses', 'XX', 'GT', unpack(stay))
end
return out
