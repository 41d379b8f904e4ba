#!lua flags=allow-oom
-- CONCURRENCY: how many transfers workers have in flight, for one worker or for all, those that join later included.
-- They are told with their next sign of life. What is said to all replaces what was said to single ones.
-- ARGV: worker, or "" for all; number, or "" for what each was started with.
-- Result: workers that are told; for one worker 0 where it is not registered.
-- Cost: O(workers).
-- Again: the same.

local worker, count = ARGV[1], ARGV[2]
local function tell(name)
  if count ~= '' and worker ~= '' then
    redis.call('HSET', K .. ':w:' .. name, 'wanted', count)
  else
    redis.call('HDEL', K .. ':w:' .. name, 'wanted')
  end
end
if worker ~= '' then
  if not redis.call('ZSCORE', K .. ':workers', worker) then return 0 end
  tell(worker)
  return 1
end
if count == '' then redis.call('DEL', K .. ':concurrency') else redis.call('SET', K .. ':concurrency', count) end
local all = redis.call('ZRANGE', K .. ':workers', 0, -1)
for _, name in ipairs(all) do tell(name) end
return #all
