#!lua flags=allow-oom
-- RECLAIM: returns the jobs of a worker that is not registered to their lists without counting a delivery.
-- ARGV: worker.
-- Result: jobs put back, and 1 if some are left.
-- Cost: O(jobs), at most 64 per call.
-- Again: goes on.

local worker, n, seen = ARGV[1], 0, 0
if redis.call('ZSCORE', K .. ':workers', worker) then return {'0', '0'} end
for _, name in ipairs(redis.call('HKEYS', own(worker))) do
  if name:sub(1, 1) ~= '#' then
    if seen == 64 then return {tostring(n), '1'} end
    seen = seen + 1
    local payload = redis.call('HGET', own(worker), name)
    redis.call('HDEL', own(worker), name)
    pcall(function() if giveBack(name, payload) then n = n + 1 end end)
  end
end
redis.call('DEL', own(worker))
return {tostring(n), '0'}
