#!lua flags=allow-oom
-- CANCEL: ends a batch now. Its open URLs read as `cancelled` from then on; the total stays as far as it is known.
-- ARGV: batch.
-- Result: the state it had, nil if there is no such batch.
-- Cost: O(1), and the deletion of its job list.
-- Again: changes nothing.

local state = redis.call('HGET', batch(ARGV[1]), 'state')
if state == 'running' then close(ARGV[1], 'cancelled', 'hand') end
return state
