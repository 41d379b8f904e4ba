#!lua flags=allow-oom
-- SHARDS: the shards of a batch. One writer at a time owns a shard, from when its lines are queued until it is recorded
-- as written; it loses what it owns when its lease has ended and another one wants it. Counts lines, which takes the
-- shards that nobody owns; takes one to write it, and keeps it meanwhile; records one that is whole.
-- ARGV: batch, its nonce, writer, its lease in ms, id of the cache that it reads, "1" if it is the only one, then
-- one of these: `count` and (shard, index of its first line, lines, how many of the first are known to have ended) of
-- each; `take` or `keep` (it has taken it), shard; `record` or `found` (it was there), shard, its bytes; `leave`.
-- Result: of `count` for each shard how many of its first lines have ended, `-1` if another writer owns it, `-2` if all
-- have and another cache has one of its images; of the others 1, or 0 if another writer owns the shard; nil if a later
-- batch has the id, or none.
-- Cost: O(shards + lines that have ended since); with several caches once O(lines) of each shard.
-- Again: the same.
--
-- A writer takes shards with `count` and `take` alone: who has lost one while writing it cannot record it, and does not
-- name it as whole.

local id, writer, cache, what = ARGV[1], ARGV[3], ARGV[5], ARGV[7]
local m, key = redis.call('HMGET', batch(id), 'nonce', 'shards'), shards(id)
if not m[1] or m[1] ~= ARGV[2] then return false end
if what == 'leave' then
  redis.call('HDEL', key, '@' .. writer)
  return 1
end
tick()
local sums = {(m[2] or ''):match('^(%d+) (%d+) (%d+)$')}
-- What earlier runs have written may be other shards, in another place: what is there is found again.
if ARGV[6] == '1' then
  redis.call('DEL', key)
  sums = {}
end
for i = 1, 3 do sums[i] = number(sums[i], 0) end
redis.call('HSET', key, '@' .. writer, string.format('%d', now() + number(ARGV[4], 0)))
-- The owner of a shard, and its bytes if it is written.
local function known(shard) return (redis.call('HGET', key, shard) or ''):match('^(%S+) ?(%d*)$') end
local function isOthers(owner, bytes)
  return owner and owner ~= writer and bytes == '' and number(redis.call('HGET', key, '@' .. owner), 0) > now()
end
local function add(n, bytes)
  sums[1], sums[2] = math.max(0, sums[1] + n), math.max(0, sums[2] + n * number(bytes, 0))
end
local out = 1
if what == 'count' then
  local all = redis.call('HLEN', caches(id))
  local mine = (redis.call('HGET', caches(id), cache) or ''):match('^%d+')
  mine = mine and math.min(number(mine, 0), 255)
  -- Whether another cache has an image of these lines.
  local function isElsewhere(said, first)
    if all == 0 or all == 1 and mine then return false end
    local where = redis.call('GETRANGE', places(id), first, first + #said - 1)
    for i = 1, #said do
      local code = said:byte(i)
      if code >= 1 and code <= 3 and (where:byte(i) or 0) ~= mine then return true end
    end
    return false
  end
  out, sums[3] = {}, 0
  for i = 8, #ARGV - 3, 4 do
    local shard, first, lines, ended = ARGV[i], number(ARGV[i + 1], 0), number(ARGV[i + 2], 0), number(ARGV[i + 3], 0)
    local owner, bytes = known(shard)
    if isOthers(owner, bytes) then
      ended = -1
    else
      if owner ~= writer and (bytes or '') == '' then redis.call('HSET', key, shard, writer) end
      local said = redis.call('GETRANGE', outcomes(id), first + ended, first + lines - 1)
      ended = ended + (said:find('\0', 1, true) or #said + 1) - 1
      if ended == lines and isElsewhere(redis.call('GETRANGE', outcomes(id), first, first + lines - 1), first) then
        ended = -2
      elseif ended > 0 and ended < lines then
        sums[3] = sums[3] + 1
      end
    end
    out[#out + 1] = ended
  end
else
  local owner, bytes = known(ARGV[8])
  local isWritten = (bytes or '') ~= ''
  if what == 'take' then
    if isOthers(owner, bytes) then return 0 end
    if isWritten then add(-1, bytes) end
    redis.call('HSET', key, ARGV[8], writer)
  elseif what == 'keep' then
    if owner ~= writer or isWritten then return 0 end
  elseif what == 'record' or not isWritten then
    if what == 'record' and owner ~= writer or isOthers(owner, bytes) then return 0 end
    if isWritten then add(-1, bytes) end
    add(1, ARGV[9])
    redis.call('HSET', key, ARGV[8], writer .. ' ' .. string.format('%d', number(ARGV[9], 0)))
  end
end
redis.call('HSET', batch(id), 'shards', string.format('%d %d %d', sums[1], sums[2], sums[3]))
local left = redis.call('PTTL', batch(id))
if left > 0 then redis.call('PEXPIRE', key, left) end
return out
