#!lua flags=allow-oom
-- SHARDS: a run tells what it has written of its batch.
-- ARGV: batch, shards, their bytes, shards of which the first lines have ended, and not all.
-- Result: 1; 0 if the batch is gone.
-- Cost: O(1).
-- Again: the same.

local id = ARGV[1]
if redis.call('EXISTS', batch(id)) == 0 then return 0 end
redis.call('HSET', batch(id), 'shards', table.concat({ ARGV[2], ARGV[3], ARGV[4] }, ' '))
return 1
