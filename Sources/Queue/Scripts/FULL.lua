#!lua flags=allow-oom
-- FULL: who feeds a batch is there, and waits for a Redis that has reached its maxmemory. PUSH, which is refused then,
-- says so otherwise.
-- ARGV: batch.
-- Result: its state, nil where it is gone.
-- Cost: O(1).
-- Again: the same.

local id = ARGV[1]
endDue()
local state = redis.call('HGET', batch(id), 'state')
if state == 'running' then redis.call('HSET', batch(id), 'fed', now(), 'full', now()) end
return state
