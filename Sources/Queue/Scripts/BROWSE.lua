#!lua flags=allow-oom,no-writes
-- BROWSE: a queue at one moment: its settings, workers, running batches, the newest batches, hosts in trouble.
-- ARGV: how many of the newest batches.
-- Result: time in ms; numbers (failed URLs, their limit, how many were removed for it, invalid jobs, 1 if the queue is
-- paused, transfers in flight set for all, lost workers, their jobs, their open URLs); hosts in trouble; registered
-- workers and the ends of their leases; the record of each; number of claims of each; running batches; for each its
-- waiting jobs and its fields `broken`, `full` and `fed`, or the error of its key; then id and fields of each of the
-- newest batches.
-- Cost: twelve commands, two per registered worker (4,096 at most), two per running batch, and one for each of the
-- newest; nothing depends on the number of URLs.
-- Again: reads only.
--
-- A key of a wrong type affects its own batch only.

local limit = redis.call('HMGET', K .. ':failed:limit', 'max', 'removed')
local losses = redis.call('HMGET', K .. ':losses', 'workers', 'jobs', 'urls')
local workers = redis.call('ZRANGE', K .. ':workers', 0, 4095, 'WITHSCORES')
local running = redis.call('SMEMBERS', K .. ':running')
table.sort(running)
local said, claims, states = {}, {}, {}
for i = 1, #workers, 2 do
  local count = 0
  for _, name in ipairs(redis.call('HKEYS', own(workers[i]))) do
    if name:sub(1, 1) ~= '#' then count = count + 1 end
  end
  said[#said + 1] = redis.call('HGETALL', K .. ':w:' .. workers[i])
  claims[#claims + 1] = count
end
for i, id in ipairs(running) do
  local waiting = redis.pcall('LLEN', jobs(id))
  local state = redis.pcall('HMGET', batch(id), 'broken', 'full', 'fed', 'nonce')
  if state.err then state = {state.err}
  elseif not state[4] then state = {'its record is gone'} end
  states[i] = {type(waiting) == 'number' and waiting or 0, unpack(state, 1, 3)}
end
local out = {
  now(),
  {
    redis.call('SCARD', K .. ':failed'), limit[1], limit[2], redis.call('LLEN', K .. ':dead'),
    redis.call('EXISTS', K .. ':paused'), redis.call('GET', K .. ':concurrency'), losses[1], losses[2], losses[3]
  },
  redis.call('HGETALL', K .. ':hosts'), workers, said, claims, running, states
}
local most = tonumber(ARGV[1])
for _, id in ipairs(most > 0 and redis.call('ZRANGE', K .. ':batches', 0, most - 1, 'REV') or {}) do
  local fields = redis.pcall('HGETALL', batch(id))
  out[#out + 1] = id
  out[#out + 1] = fields.err and {} or fields
end
return out
