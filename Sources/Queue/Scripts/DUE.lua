#!lua flags=allow-oom
-- DUE: ends the batches whose deadline has passed, as every CLAIM, BEAT and PUSH does: for queues without workers.
-- ARGV: nothing.
-- Result: how many were due.
-- Cost: O(those), at most 16.
-- Again: 0.

return endDue()
