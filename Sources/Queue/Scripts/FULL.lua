#!lua flags=allow-oom
-- FULL: the feeder of a batch is alive and waits for a Redis at maxmemory, which refuses the PUSH that would note this.
-- ARGV: batch.
-- Result: its state, nil if it is gone.
-- Cost: O(1).
-- Again: the same.

local id = ARGV[1]
endDue()
local state = redis.call('HGET', batch(id), 'state')
if state == 'running' then redis.call('HSET', batch(id), 'fed', now(), 'full', now()) end
return state
