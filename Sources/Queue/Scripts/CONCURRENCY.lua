#!lua flags=allow-oom
-- CONCURRENCY: sets the transfers in flight of one worker, or of all including those that join later. Workers get it in
-- the reply to their next heartbeat. A value for all replaces those of single workers.
-- ARGV: worker, or "" for all; number, `auto`, or "" for the worker's startup value.
-- Result: workers concerned; for one worker 0 if it is not registered.
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
