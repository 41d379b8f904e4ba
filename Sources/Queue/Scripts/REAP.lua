#!lua flags=allow-oom
-- REAP: returns the jobs of a worker whose lease has expired, or ends later than two leases from now, to the front of
-- their lists; each counts one more delivery, unless the caller knows that none is to blame. A key of a
-- wrong type loses the jobs of its own batch only. The losses are counted in `losses`.
-- ARGV: worker that the caller knows to have died, whatever its lease ("" = the first expired lease), most jobs, "1" if
-- no job is to blame.
-- Result: worker and jobs put back, or nothing.
-- Cost: O(jobs), at most the number given, 64.
-- Again: goes on where it stopped.

tick()
local worker = ARGV[1]
if worker == '' then
  -- The stored end counts, not the key's expiry, which follows Redis' own clock.
  if tonumber(redis.call('GET', K .. ':hold') or '0') > now() then return {} end
  worker = redis.call('ZRANGE', K .. ':workers', '-inf', now(), 'BYSCORE', 'LIMIT', 0, 1)[1]
  if not worker then
    -- No lease ends that late: another client wrote it, or the queue's clock was lost.
    local last = redis.call('ZRANGE', K .. ':workers', 0, 0, 'REV', 'WITHSCORES')
    local lease = last[1] and tonumber(redis.call('HGET', K .. ':w:' .. last[1], 'lease') or '')
    if not lease or tonumber(last[2]) <= now() + 2 * lease then return {} end
    worker = last[1]
  end
end
local all, n, open = redis.call('HGETALL', own(worker)), 0, 0
local function count()
  if n > 0 then redis.pcall('HINCRBY', K .. ':w:' .. worker, 'returned', n) end
  lose('jobs', n)
  lose('urls', open)
end
local marked, isBlamed = redis.call('HGET', own(worker), '#mark'), ARGV[3] ~= '1'
for i = 1, #all, 2 do
  local name = all[i]
  if name:sub(1, 1) ~= '#' then
    local id, job = parts(name), jobOf(name)
    redis.call('HDEL', own(worker), name)
    pcall(function()
      if not giveBack(name, all[i + 1]) then return end
      if isBlamed then
        redis.call('HINCRBY', tries(id), job, 1)
        if marked == name then redis.call('HINCRBY', tries(id), job .. '!', 1) end
      end
      n = n + 1
      open = open + openOf(job)
    end)
    if n >= tonumber(ARGV[2]) then
      count()
      return {worker, n}
    end
  end
end
count()
redis.call('DEL', own(worker))
lose('workers', redis.call('ZREM', K .. ':workers', worker))
depart(worker, 'lost')
return {worker, n}
