#!lua flags=allow-oom
-- KEEP: a worker lists its claims; its others go back without counting a delivery. Used after a restart of Redis, which
-- may have forgotten that a job was reported or given back: the worker dropped it, and since the worker lives, REAP
-- would never return it.
-- ARGV: worker, claims it has.
-- Result: jobs put back; -1 if the worker is not registered.
-- Cost: O(jobs).
-- Again: changes nothing.

local worker, has, n = ARGV[1], {}, 0
if not redis.call('ZSCORE', K .. ':workers', worker) then return -1 end
for i = 2, #ARGV do has[ARGV[i]] = true end
for _, name in ipairs(redis.call('HKEYS', own(worker))) do
  if name:sub(1, 1) ~= '#' and not has[name] then
    local payload = redis.call('HGET', own(worker), name)
    redis.call('HDEL', own(worker), name)
    if giveBack(name, payload) then n = n + 1 end
  end
end
local marked = redis.call('HGET', own(worker), '#mark')
if marked and not has[marked] then redis.call('HDEL', own(worker), '#mark') end
return n
