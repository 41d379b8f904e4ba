#!lua flags=allow-oom
-- RELEASE: a worker gives jobs back without counting a delivery (SIGTERM, a full disk).
-- ARGV: worker, "1" if it leaves for good, claims … (none = all).
-- Result: jobs put back.
-- Cost: O(jobs).
-- Again: changes nothing.

local worker, n = ARGV[1], 0
local names = {unpack(ARGV, 3)}
if #names == 0 then names = redis.call('HKEYS', own(worker)) end
for _, name in ipairs(names) do
  if name:sub(1, 1) ~= '#' then
    local payload = redis.call('HGET', own(worker), name)
    if payload then
      redis.call('HDEL', own(worker), name)
      pcall(giveBack, name, payload)
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
