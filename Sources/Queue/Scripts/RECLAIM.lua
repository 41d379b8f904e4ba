#!lua flags=allow-oom
-- RECLAIM: returns jobs of an unregistered worker to their lists without counting a delivery; for a registered worker
-- those that its last heartbeat did not name.
-- ARGV: worker.
-- Result: jobs put back, and 1 if some are left.
-- Cost: O(jobs), at most 64 per call.
-- Again: goes on.

local worker, n, seen = ARGV[1], 0, 0
local names, isThere = {}, redis.call('ZSCORE', K .. ':workers', worker)
if isThere then
  for name in (redis.call('HGET', own(worker), '#unheld') or ''):gmatch('%S+') do names[#names + 1] = name end
else
  names = redis.call('HKEYS', own(worker))
end
for _, name in ipairs(names) do
  if name:sub(1, 1) ~= '#' and redis.call('HEXISTS', own(worker), name) == 1 then
    if seen == 64 then return {tostring(n), '1'} end
    seen = seen + 1
    local payload = redis.call('HGET', own(worker), name)
    redis.call('HDEL', own(worker), name)
    pcall(function() if giveBack(name, payload) then n = n + 1 end end)
  end
end
if isThere then redis.call('HDEL', own(worker), '#unheld') else redis.call('DEL', own(worker)) end
return {tostring(n), '0'}
