#!lua flags=allow-oom
-- CANCEL: ends a batch now. Its open URLs read as `cancelled` from here on; the total stays what is known of it.
-- ARGV: batch.
-- Result: the state it had, nil where there is none of this id.
-- Cost: O(1), and the deletion of its job list.
-- Again: changes nothing.

local state = redis.call('HGET', batch(ARGV[1]), 'state')
if state == 'running' then close(ARGV[1], 'cancelled', 'hand') end
return state
