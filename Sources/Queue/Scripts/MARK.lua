#!lua flags=allow-oom
-- MARK: the one URL of this job goes to the decoder now, and nothing else is in flight: a death from here on is its
-- doing.
-- ARGV: worker, claim ("" takes the mark away).
-- Result: 1; 0 where the worker does not have the claim, or no mark.
-- Cost: O(1).
-- Again: the same.

if ARGV[2] == '' then return redis.call('HDEL', own(ARGV[1]), '#mark') end
if redis.call('HEXISTS', own(ARGV[1]), ARGV[2]) == 0 then return 0 end
redis.call('HSET', own(ARGV[1]), '#mark', ARGV[2])
return 1
