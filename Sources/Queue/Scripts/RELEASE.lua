#!lua flags=allow-oom
-- RELEASE: a worker gives jobs back without counting a delivery (SIGTERM, a full disk).
-- ARGV: worker, "1" if it leaves for good, claims … (none = all); with `~` in front those in which the worker's own
-- network let URLs fail: it is noted in the field `job~`.
-- Result: jobs put back.
-- Cost: O(jobs).
-- Again: changes nothing.

local worker, n = ARGV[1], 0
local names = {unpack(ARGV, 3)}
if #names == 0 then names = redis.call('HKEYS', own(worker)) end
-- Each worker once, and no more than tell that it is not the worker.
local function doubt(name)
  local id, field = parts(name), jobOf(name) .. '~'
  local known = redis.call('HGET', tries(id), field) or ''
  if #known > 1000 or (' ' .. known .. ' '):find(' ' .. worker .. ' ', 1, true) then return end
  redis.call('HSET', tries(id), field, known == '' and worker or known .. ' ' .. worker)
end
for _, name in ipairs(names) do
  local isDoubted = name:sub(1, 1) == '~'
  if isDoubted then name = name:sub(2) end
  if name:sub(1, 1) ~= '#' then
    local payload = redis.call('HGET', own(worker), name)
    if payload then
      redis.call('HDEL', own(worker), name)
      pcall(function() if giveBack(name, payload) and isDoubted then doubt(name) end end)
      n = n + 1
    end
  end
end
if ARGV[2] == '1' then
  redis.call('DEL', own(worker))
  redis.call('ZREM', K .. ':workers', worker)
  depart(worker, 'left')
end
return n
